/**
 * GET /wait?db=&txid=&timeout=: responds when a transaction is here. Without a txid: when everything that applications
 * had committed on this node before the request is durable, with the position after it, so that a program that has
 * just written knows a position that includes its write, whatever others write meanwhile. `ack` on the primary also
 * waits for replicas that have it on disk; by default as many as the node was started with.
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { parseDuration } from "#core/durations.ts";
import { fail } from "#core/errors.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { formatPosition, hex16, type Position, parsePosition } from "../position.ts";
import { isDatabaseName } from "./database-name.ts";
import type { ReplicationNode } from "./node.ts";

export interface WaitCall {
  node: ReplicationNode;
  url: URL;
  request: IncomingMessage;
  response: ServerResponse;
}

interface Wait {
  name: string;
  /** Undefined: everything committed here until now. */
  wanted: { txid: number; checksum?: bigint } | undefined;
  /** Required replicas on disk; undefined: the node's own mode. */
  replicas: number | undefined;
  timeout_ms: number;
  signal: AbortSignal;
}

const PARAMETERS = ["db", "txid", "timeout", "ack"] as const;

export async function waitFor({ node, url, response }: WaitCall): Promise<object> {
  const disconnected = new AbortController();
  response.once("close", () => disconnected.abort());
  const wait: Wait = { ...readWait(url.searchParams), signal: disconnected.signal };
  const until_ms = node.clock.monotonic() + wait.timeout_ms;
  const left_ms = (): number => Math.max(0, until_ms - node.clock.monotonic());
  const position = await reach(node, wait, left_ms);
  await acknowledged(node, wait, position.txid, left_ms());
  const { isPrimary, hostname } = node.events.status;
  const txid = hex16(position.txid);
  const primary = hostname === undefined ? {} : { primary: { hostname } };
  const copies = isPrimary ? { replicas: node.acknowledgements.in_sync.copies(wait.name, position.txid) } : {};
  return { db: wait.name, txid, position: formatPosition(position), isPrimary, ...primary, ...copies };
}

/** On the primary: waits for replicas that have it on disk. */
async function acknowledged(node: ReplicationNode, wait: Wait, txid: number, ms: number): Promise<void> {
  const { name, signal, timeout_ms } = wait;
  if (node.role.kind !== "primary") {
    if (wait.replicas === undefined) return;
    fail("conflict", "ack works only on the primary, which knows the positions of replicas");
  }
  const { mode, in_sync } = node.acknowledgements;
  const replicas = wait.replicas ?? mode.replicas;
  if (replicas === 0 || (await node.acknowledgements.until(name, txid, { replicas, ms, signal }))) return;
  const have = in_sync.copies(name, txid);
  fail(
    "wait_timeout",
    `transaction ${hex16(txid)} of ${name} is durable here, but in ${timeout_ms} ms not on ${replicas} replicas that count: ${have} have it`,
  );
}

/** The position that includes the requested transaction. */
async function reach(node: ReplicationNode, wait: Wait, left_ms: () => number): Promise<Position> {
  const { name, wanted, timeout_ms, signal } = wait;
  while (!node.look(name) && left_ms() > 0) await node.clock.sleep(1);
  const database = node.directory.get(name);
  if (!database && node.role.kind === "primary" && !node.directory.problems.get(name)) {
    fail("not_found", `there is no database ${name}`);
  }
  const txid = wanted?.txid ?? database?.position.txid ?? 1;
  refuseLost(node, wait);
  if (!(await node.waits.until(name, () => node.reached(name) >= txid, left_ms(), signal))) {
    fail(
      "wait_timeout",
      `${name} did not reach transaction ${hex16(txid)} in ${timeout_ms} ms: ${stateOf(node, name)}`,
    );
  }
  refuseLost(node, wait);
  const checksum = node.directory.get(name)?.checksumAt(txid);
  // Checksums are known within the log's retention; the current position includes it in any case.
  if (checksum === undefined) return node.directory.get(name)?.position ?? fail("not_found", `${name} was deleted`);
  return { txid, checksum };
}

/** A transaction lost with a primary never arrives; another one has its number. */
function refuseLost({ directory }: ReplicationNode, { name, wanted }: Wait): void {
  if (wanted?.checksum === undefined) return;
  const here = directory.get(name)?.checksumAt(wanted.txid);
  if (here === undefined || here === wanted.checksum) return;
  const [requested, found] = [wanted.checksum, here].map((checksum) => formatPosition({ txid: wanted.txid, checksum }));
  fail(
    "transaction_lost",
    `${name} has ${found} instead of ${requested}: another primary took over without that transaction`,
  );
}

function stateOf({ directory }: ReplicationNode, name: string): string {
  const problem = directory.problems.get(name);
  const database = directory.get(name);
  if (database) return `it is at ${formatPosition(database.position)}`;
  return problem ? `it is ${problem.state}: ${problem.reason}` : `${name} is not here yet`;
}

function readWait(query: URLSearchParams): Omit<Wait, "signal"> {
  for (const key of new Set(query.keys())) {
    if (!(PARAMETERS as readonly string[]).includes(key)) {
      refuse(key, `is not known; /wait takes ${PARAMETERS.join(", ")}`);
    }
    if (query.getAll(key).length > 1) refuse(key, "may be given once");
  }
  const name = query.get("db") ?? refuse("db", "is missing");
  if (!isDatabaseName(name)) refuse("db", `cannot be the name of a database: ${JSON.stringify(name)}`);
  const [wanted, replicas] = [wantedIn(query.get("txid")), replicasIn(query.get("ack"))];
  return { name, wanted, replicas, timeout_ms: timeoutIn(query.get("timeout")) };
}

function replicasIn(text: string | null): number | undefined {
  if (text === null) return undefined;
  const replicas = { none: 0, one: 1 }[text] ?? (/^\d{1,2}$/.test(text) ? Number(text) : Number.NaN);
  if (replicas <= REPLICATION_LIMITS.cluster_size) return replicas;
  return refuse("ack", `must be none, one, or a number of replicas up to ${REPLICATION_LIMITS.cluster_size}`);
}

function wantedIn(text: string | null): Wait["wanted"] {
  if (text === null) return undefined;
  const position = parsePosition(text);
  if (position) return position;
  const txid = /^[0-9a-f]{1,16}$/.test(text) ? Number.parseInt(text, 16) : Number.NaN;
  if (Number.isSafeInteger(txid)) return { txid };
  return refuse("txid", "must be a transaction such as 00000000000000ff, or a whole position: txid/checksum");
}

function timeoutIn(text: string | null): number {
  const { wait_ms, wait_most_ms } = REPLICATION_LIMITS;
  const ms = text === null ? wait_ms : parseDuration(text);
  if (ms !== undefined && ms <= wait_most_ms) return ms;
  return refuse("timeout", `must be a time such as 500ms or 5s, at most ${wait_most_ms / 1000}s`);
}

function refuse(name: string, problem: string): never {
  fail("invalid_request", `${name} ${problem}`, { details: [{ path: `query.${name}`, problem }] });
}
