/** An acknowledged write survives kill -9, at the store and through the whole platform. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { openConnection } from "#stores/sqlite/open.ts";
import { random, runs, seed, tempDir, until } from "../support.ts";
import { startProgram } from "./child.ts";
import { type Daemon, startDaemon } from "./daemon.ts";
import { type Acks, examine, type Findings, noteAck } from "./store/load.ts";

const WRITERS = 8;

suite("kill -9", () => {
  test("kill -9 of a writer loses and tears no acknowledged write (S1)", async (t) => {
    const kills = runs(12, 200, 1000);
    const { told, lost, wrong } = await killWriters(t, kills);
    t.diagnostic(`${told} acknowledged writes in ${kills} kills, ${lost} lost`);
    assert.deepEqual({ lost, wrong }, { lost: 0, wrong: [] });
    assert.ok(told > kills * WRITERS, "the writers wrote");
  });

  test("control: a write acknowledged too early is lost, and that is detected (S1)", async (t) => {
    const { lost } = await killWriters(t, 8, "early");
    assert.ok(lost > 0, "the kills did not fall between an acknowledgement and its commit");
  });

  test("kill -9 of the platform loses no created app, and a repeated request creates no second one (S1)", async (t) => {
    const dice = random(seed(t));
    const dir = tempDir();
    const created = new Map<string, string>();
    let unsure = 0;
    for (let kill = 0; kill < runs(1, 15, 30); kill++) {
      const daemon = await startDaemon(t, dir);
      const first = Promise.withResolvers<void>();
      const clients = Array.from({ length: 8 }, (_, client) =>
        createUntilGone(daemon, `k${kill}-c${client}`, first.resolve),
      );
      await first.promise;
      await delay(150 * dice());
      await daemon.child.kill();
      const results = await Promise.all(clients);
      for (const { answered } of results) for (const [name, id] of answered) created.set(name, id);

      const again = await startDaemon(t, dir);
      // Whoever got no answer asks again with the same key, and is answered as if nothing had happened.
      for (const { unanswered: name } of results) {
        const { status, body } = await create(again, name);
        assert.equal(status, 201, JSON.stringify(body));
        created.set(name, String(body["id"]));
        unsure++;
      }
      for (const [name, id] of [...created].slice(-20)) {
        const repeated = await create(again, name);
        assert.equal(repeated.headers.get("idempotent-replayed"), "true");
        assert.equal(repeated.body["id"], id, "a repeat is answered with the first app");
      }
      const { body } = await again.call("GET", "/v1/apps");
      const apps = body["apps"] as { name: string; id: string }[];
      assert.deepEqual(new Map(apps.map((app) => [app.name, app.id])), created, `after kill ${kill}`);
      assert.equal(apps.length, created.size);
      await again.child.kill();
    }
    t.diagnostic(`${created.size} apps, ${unsure} of them asked for again after a kill`);
  });
});

/** Kills writers again and again, each where the last one left off, and adds up what was found. */
async function killWriters(t: TestContext, kills: number, ...how: string[]): Promise<Findings & { told: number }> {
  const dice = random(seed(t));
  const file = join(tempDir(), "hangar.db");
  const acks: Acks = new Map();
  const sum = { told: 0, lost: 0, wrong: [] as string[] };
  for (let kill = 0; kill < kills; kill++) {
    const child = startProgram(t, "test/system/store/writer.ts", [file, "FULL", String(WRITERS), ...how]);
    await child.until(/^\d+ \d+ \d+$/);
    // More than one round: on a slow disk that takes longer than what comes next.
    await until("they write", () => child.lines.length > WRITERS);
    await delay(2 + 40 * dice());
    await child.kill();
    for (const line of child.lines) {
      const [id = 0, n = 0] = line.split(" ").map(Number);
      noteAck(acks, id, n);
    }
    const db = openConnection(file);
    const { lost, wrong } = examine(db, acks);
    db.close();
    sum.told += child.lines.length;
    sum.lost += lost;
    sum.wrong.push(...wrong.map((words) => `kill ${kill}: ${words}`));
  }
  return sum;
}

const create = (daemon: Daemon, name: string) =>
  daemon.call("POST", "/v1/apps", { app_name: name }, { "idempotency-key": `key-of-${name}` });

/** Creates apps one after the other until there is no answer. */
async function createUntilGone(
  daemon: Daemon,
  prefix: string,
  created: () => void,
): Promise<{ answered: [string, string][]; unanswered: string }> {
  const answered: [string, string][] = [];
  for (let i = 0; ; i++) {
    const name = `${prefix}-${i}`;
    try {
      const { status, body } = await create(daemon, name);
      assert.equal(status, 201, JSON.stringify(body));
      answered.push([name, String(body["id"])]);
      created();
    } catch (thrown) {
      if (thrown instanceof assert.AssertionError) throw thrown;
      return { answered, unanswered: name };
    }
  }
}
