/**
 * A disk that fails under the running platform: what was in flight is answered as not known, nothing succeeds
 * from then on, and the process ends by itself, because what it remembers may not be what is kept.
 */
import assert from "node:assert/strict";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { PATIENCE_MS, random, runs, seed, until } from "../support.ts";
import { type Daemon, startDaemon } from "./daemon.ts";
import { Ext4 } from "./ext4.ts";
import { mountsMissing, ownMounts } from "./own-mounts.ts";

const CLIENTS = 8;

interface Seen {
  /** Names of apps whose creation was answered with 201 before the disk failed. */
  created: string[];
  failures: number;
  /** Requests that were begun after the first failure was told, and succeeded all the same. */
  afterwards: string[];
}

/** Creates apps until the platform no longer responds. */
async function createUntilGone(daemon: Daemon, prefix: string, seen: Seen, failedYet: () => boolean): Promise<void> {
  for (let i = 0; ; i++) {
    const app_name = `${prefix}-${i}`;
    const late = seen.failures > 0;
    const answer = await daemon.call("POST", "/v1/apps", { app_name }).catch(() => undefined);
    if (!answer) return;
    if (answer.status === 201) {
      if (late) seen.afterwards.push(app_name);
      if (!failedYet()) seen.created.push(app_name);
      continue;
    }
    assert.deepEqual([answer.status, answer.body["status"]], [503, "storage_failed"]);
    seen.failures++;
    await delay(5);
  }
}

async function failTheDisk(t: TestContext, disk: Ext4, round: number, after_ms: number): Promise<Seen> {
  const data = join(disk.path, "data");
  const daemon = await startDaemon(t, data);
  const power = await disk.switch();
  const seen: Seen = { created: [], failures: 0, afterwards: [] };
  let failed = false;
  const clients = Array.from({ length: CLIENTS }, (_, client) =>
    createUntilGone(daemon, `r${round}-c${client}`, seen, () => failed),
  );
  await until("they create", () => seen.created.length > 0);
  await delay(after_ms);
  failed = true;
  await power.cut();
  const end = await Promise.race([daemon.child.ended, delay(PATIENCE_MS)]);
  assert.ok(end, `it still runs ${PATIENCE_MS} ms after its disk failed`);
  assert.ok(end.code !== 0 && end.signal === null, JSON.stringify(end));
  assert.match(daemon.child.complaints, /^The store failed [^\n]+\n$/, "one line, not a stack");
  await Promise.all(clients);

  disk.unmount();
  disk.mount();
  const again = await startDaemon(t, data);
  const { body } = await again.call("GET", "/v1/apps");
  const kept = new Set((body["apps"] as { name: string }[]).map((app) => app.name));
  assert.deepEqual(
    seen.created.filter((name) => !kept.has(name)),
    [],
    "what was answered before is there",
  );
  await again.child.kill();
  return seen;
}

if (await ownMounts(import.meta.filename)) {
  suite("failing disk", { skip: mountsMissing() }, () => {
    test("writes fail with storage_failed, then the platform exits (S4)", async (t) => {
      const dice = random(seed(t));
      const disk = new Ext4(t, 64);
      const rounds = runs(1, 20, 50);
      let failures = 0;
      let created = 0;
      for (let round = 0; round < rounds; round++) {
        const seen = await failTheDisk(t, disk, round, 200 * dice());
        assert.deepEqual(seen.afterwards, [], "nothing succeeds after the first failure");
        failures += seen.failures;
        created += seen.created.length;
      }
      t.diagnostic(`${created} created, ${failures} answered with storage_failed in ${rounds} rounds`);
      assert.ok(failures >= rounds && created > 0);
    });
  });
}
