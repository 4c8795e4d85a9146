import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { suite, type TestContext, test } from "node:test";
import { queryObjects } from "node:v8";
import type { NodeMessage as ClientMessage } from "#client/db-nodes.ts";
import { type Clock, systemClock } from "#core/clock.ts";
import { until } from "../../../test/support.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { readState, readUpdate } from "./node-messages.ts";
import { Observer } from "./observer.ts";
import { Outbox } from "./outbox.ts";
import type { NodeMessage } from "./types.ts";

const HELD = { "held.db": { state: "busy", reason: "an application holds the write lock" } };

const NODE = { app_name: "ledger", machine_id: "m1", machine_name: "one", instance_id: "v1" };
const INFO = {
  isPrimary: true,
  term: 3,
  lagMs: 0,
  replicas: [],
  databases: { "app.db": `${"0".repeat(15)}a/${"f".repeat(16)}` },
  states: { "held.db": { state: "busy", reason: "an application holds the write lock" }, bad: 7, odd: { state: {} } },
};

/** A server in place of a node, with this state and these events. */
async function answering(t: TestContext, info: unknown, events: (response: ServerResponse) => void) {
  const server = createServer(({ url }, response) => {
    if (url === "/info") response.end(JSON.stringify(info));
    else events(response.writeHead(200));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { host: "127.0.0.1", port: (server.address() as AddressInfo).port };
}

/** Messages that a reader receives until it has enough. The compiler compares the clients' message type with ours. */
async function told(observer: Observer, enough: (messages: NodeMessage[]) => boolean): Promise<ClientMessage[]> {
  const ending = new AbortController();
  const messages: NodeMessage[] = [];
  for await (const some of observer.follow("org", ending.signal)) {
    messages.push(...some);
    if (enough(messages)) ending.abort();
  }
  return messages;
}

const has = (messages: NodeMessage[], ...types: string[]): boolean =>
  types.every((type) => messages.some((message) => message.type === type));

const silent = (messages: NodeMessage[]): boolean => messages.some((one) => one.type === "node" && one.state === null);

suite("observed nodes", () => {
  test("the state comes first, then updates; transactions that arrive together are one message", async (t) => {
    const tx = (n: number): string =>
      `${JSON.stringify({ type: "tx", db: "app.db", data: { txID: n.toString(16) } })}\n`;
    const address = await answering(t, INFO, (response) => {
      response.write('{"type":"init","data":{"isPrimary":true}}\n');
      response.write(`${tx(11)}${tx(12)}${tx(13).slice(0, 20)}`);
      response.write(`${tx(13).slice(20)}{"type":"primaryChange","data":{"isPrimary":false,"hostname":"h:1"}}\n`);
    });
    const observer = new Observer({ clock: systemClock, nodes: async () => [{ ...NODE, address }] });
    const messages = await told(observer, (messages) => has(messages, "node", "tx", "primary"));
    const state = { primary: true, term: 3, lag_ms: 0, replicas: 0, databases: { "app.db": 10 }, problems: HELD };
    const transactions = messages.flatMap((one) => (one.type === "tx" ? [one] : []));
    assert.equal(
      transactions.reduce((sum, one) => sum + one.transactions, 0),
      3,
    );
    assert.equal(transactions.at(-1)?.txid, 13);
    const node = messages.find(({ type }) => type === "node");
    assert.deepEqual(node?.type === "node" && node.state, state);
    const change = messages.find(({ type }) => type === "primary");
    assert.deepEqual(change?.type === "primary" && [change.primary, change.hostname], [false, "h:1"]);
  });

  test("a server that is no node, or sends too much, is dropped with the reason", async (t) => {
    const nothing = (response: ServerResponse): void => response.flushHeaders();
    const hostile: [RegExp, unknown, (response: ServerResponse) => void][] = [
      [/is no node/, { hello: "world" }, nothing],
      [/JSON/, INFO, (response) => response.write("hello\n")],
      [
        /longer than observed_bytes/,
        INFO,
        (response) => response.write("x".repeat(REPLICATION_LIMITS.observed_bytes + 1)),
      ],
      [/larger than observed_bytes/, { ...INFO, more: "x".repeat(REPLICATION_LIMITS.observed_bytes) }, nothing],
      [/its events ended/, INFO, (response) => response.end()],
      [/observed_changes/, INFO, (response) => response.write('{"type":"primaryChange"}\n'.repeat(200))],
    ];
    for (const [reason, info, events] of hostile) {
      const address = await answering(t, info, events);
      const observer = new Observer({ clock: systemClock, nodes: async () => [{ ...NODE, address }] });
      const messages = await told(observer, silent);
      const last = messages.find((one) => silent([one]));
      assert.match(last?.type === "node" ? last.reason : "", reason);
    }
  });

  test("a stopped machine is removed, and a reader that leaves closes its connections", async (t) => {
    let open = 0;
    let there = true;
    const address = await answering(t, INFO, (response) => {
      open++;
      response.on("close", () => open--);
      response.flushHeaders();
    });
    const observer = new Observer({ clock: systemClock, nodes: async () => (there ? [{ ...NODE, address }] : []) });
    await told(observer, (messages) => {
      if (has(messages, "node")) there = false;
      return has(messages, "gone");
    });
    there = true;
    await told(observer, (messages) => has(messages, "node"));
    await until("every connection is closed", () => open === 0);
  });

  test("delivered messages do not stay in memory", async (t) => {
    const address = await answering(t, INFO, (response) => {
      const line = '{"type":"tx","db":"app.db","data":{"txID":"1"}}\n';
      const timer = setInterval(() => response.write(line), 1);
      response.on("close", () => clearInterval(timer));
    });
    // Messages are not batched, so that there are many.
    const sleep: Clock["sleep"] = (ms, signal) =>
      systemClock.sleep(ms === REPLICATION_LIMITS.observed_gather_ms ? 0 : ms, signal);
    const clock = { ...systemClock, sleep };
    const observer = new Observer({ clock, nodes: async () => [{ ...NODE, address }] });
    const kept: number[] = [];
    let told_of = 0;
    await told(observer, () => {
      told_of++;
      if (told_of % 100 === 0) kept.push(queryObjects(Promise, { format: "count" }));
      return told_of === 200;
    });
    const [before = 0, after = 0] = kept;
    assert.ok(after - before < 100, `${after - before} promises more after 100 messages`);
  });

  test("too many readers are refused, and one that leaves makes room", async () => {
    const observer = new Observer({ clock: systemClock, nodes: async () => [] });
    const ending = new AbortController();
    const readers = Array.from({ length: REPLICATION_LIMITS.observers }, () => observer.follow("org", ending.signal));
    const reading = readers.map((reader) => reader.next());
    assert.throws(() => observer.follow("org", ending.signal), { code: "overloaded" });
    ending.abort();
    await Promise.all(reading);
    await observer.follow("org", ending.signal).next();
  });

  test("the queue of a slow reader does not grow with the number of updates", () => {
    const outbox = new Outbox(() => 0);
    for (let txid = 1; txid <= 10_000; txid++) {
      outbox.news(NODE, { type: "tx", db: "app.db", txid });
      outbox.state(NODE, readState(JSON.stringify({ ...INFO, lagMs: txid })), "");
    }
    const [tx, ...rest] = outbox.take();
    assert.deepEqual(tx, { ...NODE, type: "tx", db: "app.db", transactions: 10_000, txid: 10_000, timestamp: 0 });
    assert.equal(rest.length, 1);
    assert.deepEqual(outbox.take(), []);
    for (let n = 0; n < 10_000; n++) outbox.news(NODE, { type: "tx", db: `made-up-${n}`, txid: 1 });
    assert.equal(outbox.take().length, REPLICATION_LIMITS.observed_databases);
  });

  test("invalid updates are ignored", () => {
    for (const line of [
      "null",
      "[]",
      '{"type":"tx"}',
      '{"type":"tx","db":7,"data":{}}',
      '{"type":"else"}',
      '{"type":"init"}',
    ])
      assert.equal(readUpdate(line), undefined, line);
    assert.deepEqual(readState('{"isPrimary":false,"term":-1,"lagMs":"x","databases":{"a":"b","":7}}'), {
      primary: false,
      term: 0,
      lag_ms: 0,
      replicas: 0,
      databases: {},
      problems: {},
    });
  });
});
