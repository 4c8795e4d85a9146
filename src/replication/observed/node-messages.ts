/**
 * Validates messages of a node, which are untrusted: it runs in a tenant's machine, and any program can respond
 * instead.
 */

import { REPLICATION_LIMITS } from "../limits.ts";
import { parsePosition } from "../position.ts";
import type { NodeState } from "./types.ts";

/** A line of its events. */
export type NodeUpdate =
  | { type: "primary"; primary: boolean; hostname?: string }
  | { type: "tx"; db: string; txid: number };

const NAME_CHARS = 256;
const REASON_CHARS = 1000;

type Fields = Record<string, unknown>;

const fieldsOf = (value: unknown): Fields => (typeof value === "object" && value !== null ? (value as Fields) : {});

const count = (value: unknown): number => (typeof value === "number" && value >= 0 && value < 2 ** 53 ? value : 0);

const isName = (text: unknown): text is string =>
  typeof text === "string" && text.length > 0 && text.length <= NAME_CHARS;

/** Throws when it is not valid. */
export function readState(text: string): NodeState {
  const said = fieldsOf(JSON.parse(text));
  if (typeof said["isPrimary"] !== "boolean") throw new Error("what answers there is no node of a replicated database");
  const databases = Object.entries(fieldsOf(said["databases"]))
    .slice(0, REPLICATION_LIMITS.observed_databases)
    .flatMap(([name, position]): [string, number][] => {
      const txid = typeof position === "string" ? parsePosition(position)?.txid : undefined;
      return isName(name) && txid !== undefined ? [[name, txid]] : [];
    });
  return {
    primary: said["isPrimary"],
    term: count(said["term"]),
    lag_ms: Math.round(count(said["lagMs"])),
    replicas: Array.isArray(said["replicas"]) ? said["replicas"].length : 0,
    databases: Object.fromEntries(databases),
    problems: Object.fromEntries(problemsIn(said["states"])),
  };
}

function problemsIn(states: unknown): [string, { state: string; reason: string }][] {
  return Object.entries(fieldsOf(states))
    .slice(0, REPLICATION_LIMITS.observed_databases)
    .flatMap(([name, value]): [string, { state: string; reason: string }][] => {
      const { state, reason } = fieldsOf(value);
      if (!isName(name) || !isName(state)) return [];
      return [[name, { state, reason: typeof reason === "string" ? reason.slice(0, REASON_CHARS) : "" }]];
    });
}

/** Undefined for an irrelevant line. Throws when it is not JSON. */
export function readUpdate(line: string): NodeUpdate | undefined {
  const { type, db, data } = fieldsOf(JSON.parse(line));
  const said = fieldsOf(data);
  if (type === "tx") {
    const txid = Number.parseInt(String(said["txID"]), 16);
    return isName(db) && Number.isSafeInteger(txid) ? { type, db, txid } : undefined;
  }
  // The first line repeats the state, which is queried anyway.
  if (type !== "primaryChange") return undefined;
  const { hostname } = said;
  return { type: "primary", primary: said["isPrimary"] === true, ...(isName(hostname) ? { hostname } : {}) };
}
