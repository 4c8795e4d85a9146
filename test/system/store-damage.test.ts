/**
 * Bytes of the database that are not what was written: the platform says so and does not start, whatever was damaged, and
 * nothing is changed, so that what is left can be saved. It never starts with less than what it had acknowledged.
 */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { appendFileSync, cpSync, existsSync, readFileSync, rmSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { readSettings } from "#core/settings.ts";
import { runCheck } from "../../src/maintenance.ts";
import { random, runs, seed, tempDir } from "../support.ts";
import { startProgram } from "./child.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

const FILES = ["hangar.db", "hangar.db-wal"] as const;
const MACHINES = 12;

async function filled(t: TestContext): Promise<{ data: string; log: string; ids: string[] }> {
  const dir = tempDir();
  const data = join(dir, "data");
  const daemon = await startDaemon(t, data);
  await daemon.call("POST", "/v1/apps", { app_name: "web" });
  for (let index = 0; index < MACHINES; index++) {
    const { status } = await daemon.call("POST", "/v1/apps/web/machines", { config: { image: "web:1" } });
    assert.equal(status, 200);
  }
  const ids = await idsOf(daemon);
  assert.equal(ids.length, MACHINES);
  await daemon.child.kill();
  // Everything is in the log; of the other one everything is in the database.
  const log = join(dir, "log");
  cpSync(data, log, { recursive: true });
  const again = await startDaemon(t, data);
  again.child.signal("SIGTERM");
  await again.child.ended;
  assert.equal(existsSync(join(data, "hangar.db-wal")), false, "a platform that was stopped leaves no log");
  return { data, log, ids };
}

async function idsOf(daemon: Daemon): Promise<string[]> {
  const { body } = await daemon.call("GET", "/v1/apps/web/machines");
  return (body as unknown as { id: string }[]).map(({ id }) => id).sort();
}

/** A log without anything in it is none. */
const hashes = (data: string): string[] =>
  FILES.map((name) => {
    const bytes = existsSync(join(data, name)) ? readFileSync(join(data, name)) : Buffer.alloc(0);
    return createHash("sha256").update(bytes).digest("hex");
  });

/**
 * The middle of the log's frames that are in force, inside a page. After a checkpoint the log is written from its
 * beginning again, and what is behind that is left over: to change it is no damage.
 */
function middleOf(log: string): number {
  const bytes = readFileSync(log);
  const frame = FRAME_HEADER + bytes.readUInt32BE(8);
  const salts = bytes.subarray(16, 24);
  let frames = 0;
  const at = (index: number): number => WAL_HEADER + index * frame;
  while (at(frames + 1) <= bytes.length && bytes.subarray(at(frames) + 8, at(frames) + 16).equals(salts)) frames++;
  assert.ok(frames > 0, "the log has frames");
  return at(frames >> 1) + frame / 2;
}

const WAL_HEADER = 32;
const FRAME_HEADER = 24;

function flip(file: string, at: number): void {
  const bytes = readFileSync(file);
  bytes.writeUInt8(bytes.readUInt8(at) ^ 0x55, at);
  writeFileSync(file, bytes);
}

/** The words with which it refuses; undefined when it starts and has everything. */
async function refusal(t: TestContext, data: string, ids: readonly string[]): Promise<string | undefined> {
  const before = hashes(data);
  const args = ["--data-dir", data, "--listen", "127.0.0.1:0", "--driver", "sim"];
  const child = startProgram(t, "src/main.ts", args);
  const ready = await child.until(/ is ready /).catch(() => undefined);
  if (ready === undefined) {
    const { code } = await child.ended;
    assert.equal(code, 1);
    assert.deepEqual(hashes(data), before, "nothing was changed");
    return child.complaints;
  }
  const base_url = / API +(\S+)/.exec(await child.until(/^ +API /))?.[1] ?? "";
  const token = readFileSync(join(data, "token"), "utf8").trim();
  const answer = await fetch(`${base_url}/v1/apps/web/machines`, { headers: { authorization: `Bearer ${token}` } });
  const there = ((await answer.json()) as { id: string }[]).map(({ id }) => id).sort();
  await child.kill();
  assert.deepEqual(there, ids, "it starts with everything, or not at all");
  return undefined;
}

suite("damaged database", () => {
  test("a damaged database is refused by the start and the check with what to do, and not modified", async (t) => {
    const { data, log, ids } = await filled(t);
    const middle = middleOf(join(log, "hangar.db-wal"));
    const damages: Record<string, [from: string, damage: (dir: string) => void]> = {
      "a flipped byte in the middle of the log": [log, (dir) => flip(join(dir, "hangar.db-wal"), middle)],
      "a flipped byte in the log's header": [log, (dir) => flip(join(dir, "hangar.db-wal"), 17)],
      "a log that was cut": [log, (dir) => truncateSync(join(dir, "hangar.db-wal"), middle)],
      "a log that is gone": [log, (dir) => rmSync(join(dir, "hangar.db-wal"))],
      "a flipped byte in a page": [data, (dir) => flip(join(dir, "hangar.db"), 4096 + 3)],
      "a database that is gone": [data, (dir) => rmSync(join(dir, "hangar.db"))],
    };
    for (const [what, [from, damage]] of Object.entries(damages)) {
      const dir = join(tempDir(), "data");
      cpSync(from, dir, { recursive: true });
      damage(dir);
      const words = await refusal(t, dir, ids);
      assert.match(
        words ?? `${what}: it started`,
        /^hangar: the database \S+ is damaged: .*`hangar restore FILE`/,
        what,
      );
      const { problem } = await runCheck(readSettings(["--data-dir", dir], {}));
      assert.match(problem ?? `${what}: nothing was found`, /is damaged/, what);
    }
  });

  test("a torn WAL tail, and a missing counter of an earlier version, are not damage", async (t) => {
    const { log, ids } = await filled(t);
    appendFileSync(join(log, "hangar.db-wal"), Buffer.alloc(5000, 7));
    const earlier = join(tempDir(), "data");
    cpSync(log, earlier, { recursive: true });
    rmSync(join(earlier, "hangar.db-commits"));
    for (const dir of [log, earlier]) assert.equal(await refusal(t, dir, ids), undefined);
    assert.deepEqual(await runCheck(readSettings(["--data-dir", log], {})), {});
  });

  test("after any changed byte all acknowledged writes are there, or the start is refused", async (t) => {
    const { data, log, ids } = await filled(t);
    const dice = random(seed(t));
    let refused = 0;
    const rounds = runs(4, 60, 400);
    for (let round = 0; round < rounds; round++) {
      const [from, name] = round % 2 === 0 ? ([log, "hangar.db-wal"] as const) : ([data, "hangar.db"] as const);
      const dir = join(tempDir(), "data");
      cpSync(from, dir, { recursive: true });
      const file = join(dir, name);
      const at = Math.floor(dice() * readFileSync(file).length);
      flip(file, at);
      const words = await refusal(t, dir, ids).catch((cause: unknown) => {
        throw new Error(`byte ${at} of ${name}`, { cause });
      });
      if (words !== undefined) refused++;
      rmSync(dir, { recursive: true, force: true });
    }
    t.diagnostic(`${refused} of ${rounds} flipped bytes were refused; the others lay in unused space or in a value`);
  });
});
