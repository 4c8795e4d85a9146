/** A control and hosts with real machines on one box, one PostgreSQL, and machines that report the time repeatedly. */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { startPostgres } from "../postgres.ts";
import { busyboxLayer } from "../rootfs.ts";
import { type Child, startProgram } from "./child.ts";
import { leftBehind, nodeIdOf } from "./leaks.ts";

export const MACHINES = "/v1/apps/web/machines";
export const LEASE_S = 3;
/** Says the time again and again, by the wall clock, which all machines of a box share. */
export const TICKER = ["sh", "-c", "trap 'exit 0' TERM INT; while :; do echo tick $EPOCHREALTIME; sleep 0.05; done"];
export const TICKING = { image: "busybox", init: { exec: TICKER }, guest: { cpus: 1, memory_mb: 256 } };

export interface RuncHost {
  child: Child;
  /** Whether anything of a machine is kept there. */
  has(machine: string): boolean;
  /** Whether the host's fence leaves a machine alone. */
  exempt(machine: string): boolean;
  /** Times a machine told, in seconds. */
  ticks(machine: string): number[];
}

export interface RuncHouse {
  database: Pick<Awaited<ReturnType<typeof startPostgres>>, "crash" | "start">;
  ask(method: string, path: string, body?: object): Promise<Record<string, unknown>>;
  host(): Promise<RuncHost>;
}

export async function house(t: TestContext): Promise<RuncHouse> {
  const dir = mkdtempSync(join(tmpdir(), "hangar-hosts-"));
  // The last that was made goes first: machines before what they are made of, processes before their database.
  const made = new AsyncDisposableStack();
  t.after(() => made.disposeAsync());
  made.defer(() => rmSync(dir, { recursive: true, force: true }));
  const images = join(dir, "images");
  mkdirSync(images);
  busyboxLayer(join(images, "busybox"));
  const postgres = await startPostgres();
  made.defer(() => postgres.stop());
  const shared = ["--driver", "runc", "--database", await postgres.database(), "--host-lease", String(LEASE_S)];
  const program = async (name: string, args: readonly string[]): Promise<{ child: Child; told: string }> => {
    const flags = ["--data-dir", join(dir, name), "--listen", "127.0.0.1:0", ...shared, ...args];
    const child = startProgram({ after: () => {} }, "test/system/hosts-runc-node.ts", [images, ...flags]);
    made.defer(async () => void (await child.kill()));
    return { child, told: (await child.until(/^ready /)).slice("ready ".length) };
  };
  const { told: base_url } = await program("control", ["--role", "control"]);
  const token = readFileSync(join(dir, "control/token"), "utf8").trim();
  const ask: RuncHouse["ask"] = async (method, path, body) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const answer = await fetch(`${base_url}${path}`, { method, headers, body: body ? JSON.stringify(body) : null });
    const words = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${words}`);
    return (words === "" ? {} : JSON.parse(words)) as Record<string, unknown>;
  };
  let hosts = 0;
  return {
    database: postgres,
    ask,
    async host() {
      const name = `host${++hosts}`;
      const join_token = String((await ask("POST", "/v1/platform/host_join_tokens"))["token"]);
      const data_dir = join(dir, name);
      made.defer(async () => {
        const installation = { data_dir, node_id: nodeIdOf(data_dir) };
        await takeDown({ ...installation, clock: systemClock, log: silentLog });
        assert.deepEqual(await leftBehind(installation, "driver is closed"), {}, "nothing of it is left");
      });
      const { child } = await program(name, ["--role", "host", "--join-token", join_token]);
      const log = (machine: string): string => join(data_dir, "logs", machine, "log");
      const ticks = (machine: string): number[] =>
        existsSync(log(machine))
          ? [...readFileSync(log(machine), "utf8").matchAll(/tick ([\d.]+)$/gm)].map(([, at]) => Number(at))
          : [];
      const exempt = (machine: string): boolean =>
        existsSync(join("/run/hangar", nodeIdOf(data_dir), "unfenced", machine));
      const has = (machine: string): boolean => existsSync(join(data_dir, "machines", machine));
      return { child, ticks, has, exempt };
    },
  };
}

/** The longest time between two ticks, in seconds. */
export const longestPause = (ticks: readonly number[]): number =>
  Math.max(0, ...ticks.slice(1).map((at, index) => at - (ticks[index] ?? at)));
