/** Hostile input: a replica never applies a part of it, a primary responds to it, and neither ends. */
import assert from "node:assert/strict";
import { mkdirSync, readdirSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { Readable } from "node:stream";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { random, runs, seed, tempDir } from "../../../test/support.ts";
import { Application, captureAll, look, openAll } from "../database/fixtures.ts";
import { Snapshot } from "../database/snapshot.ts";
import { formatPosition, type Position } from "../position.ts";
import { Directory } from "./directory.ts";
import { story, until } from "./fixtures.ts";
import type { Peer, PeerResponse } from "./peer.ts";
import type { RawBody } from "./raw-body.ts";
import { ReplicaLink } from "./replica-link.ts";
import { FRAME, frameHeader, jsonFrame, snapshotPartHead, transactionHead } from "./wire.ts";

type Next = () => number;
const pick = <T>(next: Next, list: readonly T[]): T => list[Math.floor(next() * list.length)] as T;

function directoryAt(dir: string): Directory {
  mkdirSync(dir, { recursive: true });
  return new Directory({
    dir,
    node_id: 1n,
    clock: systemClock,
    onFailure: (error) => assert.fail(String(error)),
    onTransactions: () => undefined,
    onUndone: () => undefined,
    log: () => undefined,
  });
}

/** A primary's database, with everything that can be sent of it. */
class Source {
  readonly #app: Application;
  readonly #directory: Directory;
  /** The whole database as it was at the start. */
  readonly #whole: readonly Buffer[];
  /** The checksum at each transaction. */
  readonly history = new Map<number, bigint>();

  constructor(dir: string, transactions: number) {
    mkdirSync(dir);
    this.#app = new Application(join(dir, "db"));
    this.#directory = directoryAt(dir);
    for (const database of openAll(this.#directory)) database.release();
    this.#note();
    this.#whole = this.#snapshot();
    for (let i = 0; i < transactions; i++) {
      this.#app.write(i * 37);
      captureAll(this.database);
      this.#note();
    }
  }

  get database() {
    const database = this.#directory.get("db");
    assert.ok(database);
    return database;
  }

  get last(): number {
    return this.database.position.txid;
  }

  #note(): void {
    const { txid, checksum } = this.database.position;
    this.history.set(txid, checksum);
  }

  /** What leads from a position some way further, or the whole database to whom it leads nowhere. */
  frames(from: Position | undefined, most: number): Buffer[] {
    const ready = jsonFrame(FRAME.ready, {});
    if (!from || this.history.get(from.txid) !== from.checksum) return [...this.#whole, ready];
    const frames: Buffer[] = [];
    for (let txid = from.txid + 1; txid <= Math.min(this.last, from.txid + most); txid++) {
      const ltx = this.database.log.read(txid) ?? Buffer.alloc(0);
      frames.push(Buffer.concat([transactionHead("db", ltx.length), ltx]));
    }
    return [...frames, ready];
  }

  #snapshot(): Buffer[] {
    const snapshot = Snapshot.take(this.database);
    assert.ok(snapshot);
    const { position, ...head } = snapshot.head;
    const parts = Array.from(snapshot.runs(Buffer.alloc), ({ first, data }) =>
      Buffer.concat([snapshotPartHead(first, data.length), data]),
    );
    snapshot.close();
    return [
      jsonFrame(FRAME.snapshot, { name: "db", position: formatPosition(position), ...head }),
      ...parts,
      jsonFrame(FRAME.snapshot_end, { name: "db" }),
    ];
  }

  close(): void {
    this.#directory.close();
    this.#app.close();
  }
}

const NAMES = ["../escaped", "a/b", ".hidden", "db-wal", "", "__proto__", "x".repeat(5000), "\0", "db"];
const VALUES: readonly unknown[] = [null, [], "text", 7, {}, { name: null }, { at: "x" }, { term: -1, positions: 3 }];

/** What somebody could send in place of a good row of frames. */
const MISCHIEF: readonly ((frames: Buffer[], next: Next) => Buffer)[] = [
  (frames) => Buffer.concat(frames),
  (frames, next) => {
    const bytes = Buffer.concat(frames);
    for (let i = 0; i < 1 + next() * 4; i++) bytes[Math.floor(next() * bytes.length)] = Math.floor(next() * 256);
    return bytes;
  },
  (frames, next) => {
    const bytes = Buffer.concat(frames);
    return bytes.subarray(0, Math.floor(next() * bytes.length));
  },
  (frames, next) => {
    const bytes = Buffer.concat(frames);
    const at = Math.floor(next() * bytes.length);
    return Buffer.concat([bytes.subarray(0, at), bytes.subarray(at + Math.floor(next() * 100))]);
  },
  (frames, next) => Buffer.concat([...frames, pick(next, frames), pick(next, frames)]),
  (frames, next) => Buffer.concat(frames.toSorted(() => next() - 0.5)),
  (frames, next) => Buffer.concat([Buffer.from(Array.from({ length: 40 }, () => next() * 256)), ...frames]),
  (frames, next) => Buffer.concat([jsonFrame(pick(next, Object.values(FRAME)), pick(next, VALUES)), ...frames]),
  (frames, next) =>
    Buffer.concat([jsonFrame(pick(next, Object.values(FRAME)), { name: pick(next, NAMES) }), ...frames]),
  (frames, next) => {
    const ltx = (frames[0] ?? Buffer.alloc(0)).subarray(0, 3000);
    return Buffer.concat([transactionHead(pick(next, NAMES), ltx.length), ltx, ...frames]);
  },
  (frames, next) => Buffer.concat([frameHeader(pick(next, Object.values(FRAME)), 0xffffffff), ...frames]),
  (frames) => Buffer.concat(frames.flatMap((frame) => [frameHeader(99, 3), Buffer.from("new"), frame])),
];

/** In pieces, as a network would bring it. */
function* pieces(bytes: Buffer, next: Next): Generator<Buffer> {
  for (let at = 0; at < bytes.length; ) {
    const size = 1 + Math.floor(next() * 20_000);
    yield bytes.subarray(at, at + size);
    at += size;
  }
}

/** A primary that sends these bytes and nothing else. */
function sending(bytes: Buffer, next: Next): Peer {
  const openStream = async (): Promise<PeerResponse & { body: Pick<RawBody, "read"> }> => ({
    response: Readable.from(pieces(bytes, next)) as PeerResponse["response"],
    term: 1,
    body: { read: (response, take) => response.on("data", take) },
  });
  return { hostname: "hostile:1", openStream, json: async () => ({}) } as unknown as Peer;
}

async function follow(directory: Directory, peer: Peer, distrusted: Set<string>): Promise<void> {
  const nothing = (): void => undefined;
  const events = {
    connected: nothing,
    transaction: nothing,
    heard: nothing,
    ready: nothing,
    healed: nothing,
    handoff: nothing,
    log: nothing,
  };
  const link = new ReplicaLink({
    peer,
    directory,
    node: "r",
    hostname: "r:1",
    candidate: true,
    term: 0,
    distrusted,
    events,
  });
  await assert.rejects(link.run(new AbortController().signal), Error);
}

/** Every database is at a state the primary had; now and then it is read, too. */
function check(directory: Directory, source: Source, round: number): void {
  for (const { name, position } of directory) {
    assert.equal(position.checksum, source.history.get(position.txid), `round ${round}: ${name}`);
    if (round % 10 !== 0) continue;
    const { integrity, sum } = look(join(directory.dir, name));
    assert.deepEqual([integrity, sum], ["ok", 3000], `round ${round}: ${name}`);
  }
}

suite("hostile input to replication", () => {
  test("whatever a primary sends, a replica is at a state the primary had, and goes on from there", async (t) => {
    const next = random(seed(t));
    const base = tempDir();
    const source = new Source(join(base, "primary"), 40);
    const directory = directoryAt(join(base, "replica"));
    const distrusted = new Set<string>();
    const rounds = runs(300, 10_000);
    let moved = 0;
    for (let round = 0; round < rounds; round++) {
      const before = distrusted.has("db") ? undefined : directory.get("db")?.position;
      // At the end of what there is, everything from the start again.
      const frames = source.frames(before?.txid === source.last ? undefined : before, 1 + Math.floor(next() * 4));
      await follow(directory, sending(pick(next, MISCHIEF)(frames, next), next), distrusted);
      check(directory, source, round);
      if (directory.get("db")?.position.txid !== before?.txid) moved++;
      // As if its process had died there.
      if (round % 25 === 0 && directory.get("db")) directory.reopen("db");
    }
    assert.deepEqual(readdirSync(base).sort(), ["primary", "replica"], "nothing was written anywhere else");
    // And then a good one sends what is good.
    await follow(directory, sending(Buffer.concat(source.frames(undefined, 0)), next), distrusted);
    const rest = source.frames(directory.get("db")?.position, source.last);
    await follow(directory, sending(Buffer.concat(rest), next), distrusted);
    assert.equal(directory.get("db")?.position.txid, source.last);
    t.diagnostic(`${rounds} rounds, ${moved} of them moved the replica`);
    assert.ok(moved > rounds / 5, "some of it was good");
    directory.close();
    source.close();
  });

  story("whatever request a node gets, it responds with 200 or 4xx and keeps working", async (scene) => {
    const here = scene.dir();
    const app = await scene.app(here);
    const failures: unknown[] = [];
    const primary = await scene.start(here, { kind: "primary" }, { onFailure: (error) => failures.push(error) });
    const hello = { node: "n", hostname: "h:1", term: 0, databases: {} };
    const bodies: unknown[] = [
      ...VALUES,
      { ...hello, term: 1e300 },
      { ...hello, databases: { db: "nonsense" } },
      { ...hello, databases: { db: `${"f".repeat(16)}/${"f".repeat(16)}` } },
      { databases: { db: -1, other: "x", ["__proto__"]: 1 } },
      { databases: { db: 1e300 } },
      { node: "unknown" },
      { databases: Object.fromEntries(Array.from({ length: 5000 }, (_, i) => [`db${i}`, i])) },
    ];
    const paths = [
      "/positions",
      "/stream",
      "/place",
      "/handoff",
      "/import",
      "/import?name=%00",
      "/export?name=..%2fdb",
      "/promote",
    ];
    for (const path of paths) {
      for (const body of bodies) {
        const asked = fetch(primary.url + path, { method: "POST", body: JSON.stringify(body) });
        const { status, body: answer } = await asked;
        await answer?.cancel();
        assert.ok(status === 200 || (status >= 400 && status < 500), `${path} ${JSON.stringify(body)}: ${status}`);
      }
    }
    const large = await fetch(`${primary.url}/positions`, { method: "POST", body: Buffer.alloc(2 ** 21, 32) });
    assert.equal(large.status, 413);
    for (const bytes of [
      "GET /events HTTP/9.9\r\n\r\n",
      "\0\0\0",
      `GET /events HTTP/1.1\r\nx: ${"y".repeat(1e5)}\r\n\r\n`,
    ]) {
      const socket = connect(Number(new URL(primary.url).port), "127.0.0.1");
      socket.on("error", () => undefined);
      socket.resume().write(bytes);
      await new Promise((closed) => socket.on("close", closed));
    }
    const position = primary.node.directory.get("db")?.position.txid ?? 0;
    await app.write();
    await until("it goes on", () => (primary.node.directory.get("db")?.position.txid ?? 0) > position);
    assert.deepEqual(failures, []);
  });
});
