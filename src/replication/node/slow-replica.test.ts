/** A replica that takes data more slowly than applications write: what waits for it is bounded, and so is how far it is behind. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request, type ServerResponse } from "node:http";
import { suite } from "node:test";
import { systemClock } from "#core/clock.ts";
import type { RunningNode } from "../commands.ts";
import { isBusy } from "../database/connections.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { decodeHeader } from "../ltx/codec.ts";
import { type PatientApplication, type Scene, story, until } from "./fixtures.ts";
import { FRAME, FrameReader, readTransaction } from "./wire.ts";

const TRANSACTION_BYTES = 400_000;
const MAX_LAG_MS = 60_000;
const REPLICA = "0123456789abcdef";

/** Both ends of a stream whose replica reads nothing until it is resumed. */
async function unread(scene: Scene, { node, url }: RunningNode): Promise<[ServerResponse, IncomingMessage]> {
  const { streams } = node;
  const add = streams.add.bind(streams);
  const { promise, resolve } = Promise.withResolvers<ServerResponse>();
  streams.add = (hello, response) => {
    resolve(response);
    add(hello, response);
  };
  const asked = request(`${url}/stream`, { method: "POST" });
  asked.on("error", () => undefined);
  scene.later(() => asked.destroy());
  asked.end(JSON.stringify({ node: REPLICA, hostname: "replica:1", term: 0, databases: {} }));
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  return [await promise, answer];
}

function transactionsIn(answer: IncomingMessage): number[] {
  const reader = new FrameReader();
  const txids: number[] = [];
  answer.on("data", (bytes: Buffer) => {
    reader.push(bytes);
    for (const { type, payload } of reader.frames()) {
      if (type === FRAME.transaction) txids.push(decodeHeader(readTransaction(payload).ltx).min_txid);
    }
  });
  return txids;
}

function refused({ db }: PatientApplication): boolean {
  try {
    db.exec("BEGIN IMMEDIATE; ROLLBACK");
    return false;
  } catch (error) {
    if (!isBusy(error)) throw error;
    return true;
  }
}

suite("a slow replica", () => {
  story(
    "costs no more memory than its connection, and lets writers wait for a while, not without end",
    async (scene) => {
      // Once it is slow, time passes so slowly that nothing happens by itself.
      let [now_ms, slow_since_ms] = [0, Number.POSITIVE_INFINITY];
      const monotonic = (): number => {
        const real_ms = systemClock.monotonic();
        return now_ms + Math.min(real_ms, slow_since_ms + Math.max(0, real_ms - slow_since_ms) / 100);
      };
      const clock = { ...systemClock, monotonic };
      const here = scene.dir();
      const primary = await scene.start(here, { kind: "primary" }, { clock, max_lag_ms: MAX_LAG_MS });
      const app = await scene.app(here);
      await until("it is open", () => primary.node.look("db") && primary.node.reached("db") > 0);
      const { node } = primary;
      const database = node.directory.get("db") ?? assert.fail("it is not open");
      const [response, answer] = await unread(scene, primary);
      await until("it has been sent the database", () => node.streams.hasAll(REPLICA));
      slow_since_ms = systemClock.monotonic();
      const isFull = (): boolean => response.writableLength > REPLICATION_LIMITS.stream_waiting_bytes;
      for (let [written, more] = [0, 0]; more < 10; written++) {
        assert.ok(written < 200, "nothing waits");
        await app.write(TRANSACTION_BYTES);
        await until("it is captured", () => node.look("db"));
        await until("it is durable", () => node.reached("db") === database.position.txid);
        if (isFull()) more++;
      }
      const most = REPLICATION_LIMITS.stream_waiting_bytes + 3 * TRANSACTION_BYTES;
      assert.ok(response.writableLength < most, `${response.writableLength} bytes wait`);
      assert.ok(!node.streams.hasAll(REPLICA));

      now_ms += MAX_LAG_MS / 4;
      assert.ok(node.streams.keepsUp(MAX_LAG_MS));
      assert.ok(!database.paused);
      now_ms += MAX_LAG_MS / 2;
      await app.write();
      await until("writers wait", () => database.paused && refused(app));
      now_ms += MAX_LAG_MS * REPLICATION_LIMITS.stuck_lags;
      await until("it is not waited for", () =>
        scene.said.some((line) => /replica:1 has not taken anything/.test(line)),
      );
      assert.ok(node.streams.keepsUp(MAX_LAG_MS));
      await until("writers go on", () => !database.paused && !refused(app));

      const txids = transactionsIn(answer);
      await until("it has the rest", () => txids.at(-1) === node.reached("db"));
      const [first = 0] = txids;
      assert.deepEqual(
        txids,
        txids.map((_, i) => first + i),
      );
    },
  );
});
