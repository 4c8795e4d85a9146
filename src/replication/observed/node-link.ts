import { request as httpRequest, type IncomingMessage } from "node:http";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { type Address, dialed, Endpoint } from "#core/dial.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { readBody } from "../node/peer.ts";
import { type NodeUpdate, readState, readUpdate } from "./node-messages.ts";
import type { NodeState } from "./types.ts";

export interface NodeListener {
  /** Its state, or the reason when it cannot be queried. */
  state(state: NodeState | undefined, reason: string): void;
  news(news: NodeUpdate): void;
}

const { observed_bytes, observed_info_ms, observed_find_ms, silence_ms } = REPLICATION_LIMITS;

/** Follows one node until the signal, with reconnects. */
export async function followNode(
  address: Address,
  listener: NodeListener,
  { clock, signal }: { clock: Clock; signal: AbortSignal },
): Promise<void> {
  const endpoint = new Endpoint(address);
  while (!signal.aborted) {
    const ending = new AbortController();
    const both = AbortSignal.any([signal, ending.signal]);
    try {
      const events = await query(endpoint, "/events", both);
      // Queried after the stream has begun, so that no change is missed.
      await Promise.race([readLines(events, listener), keepAsking(endpoint, listener, clock, both)]);
    } catch (thrown) {
      if (!signal.aborted) listener.state(undefined, messageOf(thrown));
    } finally {
      ending.abort();
    }
    await clock.sleep(observed_find_ms, signal).catch(() => {});
  }
}

/** Queries a node's state once. */
export async function askNode(endpoint: Endpoint, signal: AbortSignal): Promise<NodeState> {
  const answer = await query(endpoint, "/info", signal);
  return readState((await readBody(answer, "observed_bytes")).toString("utf8"));
}

async function query(endpoint: Endpoint, path: string, signal: AbortSignal): Promise<IncomingMessage> {
  const socket = await dialed(endpoint, { timeout_ms: silence_ms, signal });
  const { host, port } = endpoint;
  const answer = await new Promise<IncomingMessage>((done, failed) => {
    const request = httpRequest({ host, port, path, signal, createConnection: () => socket }, done);
    request.on("error", failed);
    // A stream is silent while nothing happens; the state query detects a dead node.
    const silent = setTimeout(() => request.destroy(new Error("it does not answer")), silence_ms);
    request.on("close", () => clearTimeout(silent));
    if (path === "/events") request.on("response", () => clearTimeout(silent));
    request.end();
  });
  // The reader gets the error too; an unread one is ignored.
  answer.on("error", () => undefined);
  if (answer.statusCode === 200) return answer;
  answer.destroy();
  throw new Error(`${path} answers ${answer.statusCode}`);
}

async function keepAsking(
  endpoint: Endpoint,
  listener: NodeListener,
  clock: Clock,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    listener.state(await askNode(endpoint, signal), "");
    await clock.sleep(observed_info_ms, signal);
  }
}

async function readLines(answer: IncomingMessage, listener: NodeListener): Promise<void> {
  answer.setEncoding("utf8");
  let rest = "";
  for await (const text of answer as AsyncIterable<string>) {
    const lines = (rest + text).split("\n");
    rest = lines.pop() ?? "";
    if (rest.length > observed_bytes) throw new Error("a line of its events is longer than observed_bytes");
    for (const line of lines) {
      const news = readUpdate(line);
      if (news) listener.news(news);
    }
  }
  throw new Error("its events ended");
}
