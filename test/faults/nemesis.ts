/**
 * What goes wrong: each fault is done to one of many by the dice, lasts a while, and is taken back. Some last less than a
 * lease, some long enough for others to act.
 */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { fill } from "../system/fill.ts";
import { clockLibrary, type FaultCluster, LEASE_S, type Node } from "./cluster.ts";
import type { History } from "./history.ts";

export type Dice = () => number;

interface Scene {
  cluster: FaultCluster;
  history: History;
  dice: Dice;
}

/** Begins a fault; what it answers with ends it. */
type Fault = (scene: Scene) => Promise<() => Promise<void> | void>;

const pick = <T>(all: readonly T[], dice: Dice): T => all[Math.floor(dice() * all.length)] ?? assert.fail();
const anyNode = ({ cluster, dice }: Scene): Node => pick<Node>([...cluster.controls, ...cluster.hosts], dice);

async function kill(node: Node, { history }: Scene): Promise<() => Promise<void>> {
  const up = history.takeDown(node.name);
  await node.child.kill();
  return async () => {
    await node.again();
    up();
  };
}

function pause(node: Node, { history }: Scene): () => void {
  const up = history.takeDown(node.name);
  node.child.signal("SIGSTOP");
  return () => {
    node.child.signal("SIGCONT");
    up();
  };
}

async function restart(node: Node, { history }: Scene): Promise<() => Promise<void>> {
  const up = history.takeDown(node.name);
  node.child.signal("SIGTERM");
  await node.child.ended;
  return async () => {
    await node.again();
    up();
  };
}

function onLinks(nodes: readonly Node[], act: (link: Node["links"][number]) => void): () => void {
  const links = nodes.flatMap((node) => node.links);
  for (const link of links) act(link);
  return () => {
    for (const link of links) {
      link.delay_ms = 0;
      link.restore();
    }
  };
}

const HOUR_S = 3600;
const JUMPS_S = [-HOUR_S, HOUR_S, -24 * HOUR_S, 2 * 365 * 24 * HOUR_S];

export const FAULTS: Readonly<Record<string, Fault>> = {
  "a host is killed": (scene) => kill(pick(scene.cluster.hosts, scene.dice), scene),
  "a control is killed": (scene) => kill(pick(scene.cluster.controls, scene.dice), scene),
  "a host is stopped": async (scene) => pause(pick(scene.cluster.hosts, scene.dice), scene),
  "a control is stopped": async (scene) => pause(pick(scene.cluster.controls, scene.dice), scene),
  "a host is restarted in order": (scene) => restart(pick(scene.cluster.hosts, scene.dice), scene),
  "a control is restarted in order": (scene) => restart(pick(scene.cluster.controls, scene.dice), scene),
  "one process's connections go silent": async (scene) => onLinks([anyNode(scene)], (link) => link.silence()),
  "the database goes silent": async ({ cluster }) =>
    onLinks([...cluster.controls, ...cluster.hosts], (link) => link.silence()),
  "one process cannot send to the database": async (scene) => onLinks([anyNode(scene)], (link) => link.hold("out")),
  "one process hears nothing of the database": async (scene) => onLinks([anyNode(scene)], (link) => link.hold("in")),
  "packets of one process are late by seconds": async (scene) =>
    onLinks([anyNode(scene)], (link) => link.hold("in", "out")),
  "a link is slow": async (scene) => {
    const delay_ms = 50 + scene.dice() * 450;
    return onLinks([anyNode(scene)], (link) => {
      link.delay_ms = delay_ms;
    });
  },
  ...(clockLibrary
    ? {
        "a wall clock jumps": async (scene: Scene) => {
          const node = anyNode(scene);
          node.setClock(pick(JUMPS_S, scene.dice));
          return () => node.setClock(0);
        },
      }
    : {}),
  "the disk of a process is full": async (scene) => fill(anyNode(scene).disk),
  "the disk of the database is full": async ({ cluster: { database } }) => {
    const free = fill(database.primary.disk);
    return async () => {
      free();
      // It ends when it cannot write its log, and somebody starts it again.
      await database.again();
    };
  },
  "the database crashes": async ({ cluster: { database } }) => {
    await database.crash();
    return () => database.again();
  },
  "the database fails over to its standby": async ({ cluster: { database } }) => {
    await database.failover();
    return () => database.restoreStandby();
  },
};

/** Sometimes shorter than a lease, sometimes long enough for others to act. */
export async function strike(name: string, scene: Scene): Promise<void> {
  const heal = await FAULTS[name]?.(scene);
  await delay(scene.dice() * 3 * LEASE_S * 1000);
  await heal?.();
}
