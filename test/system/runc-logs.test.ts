/** What machines write is kept whole while it is little, and never takes more of the disk than it may. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { openRuncDriver } from "#drivers/runtime/runc/driver.ts";
import { RUNC_LIMITS } from "#drivers/runtime/runc/limits.ts";
import { aLaunchIn } from "#machines/fixtures.ts";
import type { Ref, RuntimeDriver } from "#machines/runtime/driver.ts";
import { busyboxLayer, fixtureImages, MEMORY_KEY, realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { Warnings } from "./warnings.ts";

const never = new AbortController().signal;
/** Without what is put before each line. */
const LINE_BYTES = 1000;
/** Numbered lines, so many at each word from outside: a file of that number. */
const writer = (rounds: number, lines: number): string[] => [
  "sh",
  "-c",
  `r=0; while [ $r -lt ${rounds} ]; do
     while [ ! -e /go$r ]; do sleep 0.05; done
     awk -v r=$r 'BEGIN { x = sprintf("%0${LINE_BYTES}d", 0); for (i = 0; i < ${lines}; i++) print r * ${lines} + i, x }'
     r=$((r + 1))
   done; echo end; while :; do sleep 1; done`,
];

suite("logs of real machines", { skip: realMachinesMissing() }, () => {
  const dir = mkdtempSync(join(tmpdir(), "hangar-logs-"));
  const installation = { data_dir: join(dir, "data"), node_id: randomBytes(8).toString("hex") };
  const warnings = new Warnings();
  let driver: RuntimeDriver;

  before(async () => {
    mkdirSync(installation.data_dir);
    const images = fixtureImages({ busybox: { layers: [busyboxLayer(join(dir, "busybox"))] } });
    driver = await openRuncDriver({
      ...installation,
      memory_key: MEMORY_KEY,
      clock: systemClock,
      log: warnings.log,
      images,
    });
  });

  after(async () => {
    await driver.close();
    await takeDown({ ...installation, clock: systemClock, log: warnings.log });
    rmSync(dir, { recursive: true, force: true });
  });

  const start = async (exec: string[]): Promise<Ref> => {
    const launch = aLaunchIn(installation.node_id, { image: "busybox", init: { exec } });
    const { handle } = await driver.start(launch, never);
    return { id: launch.id, boot: launch.boot, handle };
  };
  const files = (id: string): Record<string, number> => {
    const folder = join(installation.data_dir, "logs", id);
    // One that is listed may be set aside before it is looked at.
    const size = (name: string): number => statSync(join(folder, name), { throwIfNoEntry: false })?.size ?? 0;
    const raw = readdirSync(folder).filter((name) => name.startsWith("log"));
    return Object.fromEntries(raw.map((name) => [name, size(name)]));
  };
  const go = async (ref: Ref, round: number): Promise<void> => {
    const { exit_code, stderr } = await driver.exec(
      ref,
      { command: ["touch", `/go${round}`], timeout_ms: 30_000 },
      never,
    );
    assert.equal(exit_code, 0, stderr);
  };

  test("log rotation loses and repeats no line for a follower", async () => {
    const [rounds, lines] = [3, Math.ceil((RUNC_LIMITS.log_bytes * 1.1) / LINE_BYTES)];
    const ref = await start(writer(rounds, lines));
    const seen: number[] = [];
    let { cursor } = await driver.logs(ref.id, { tail: 0 });
    const follow = async (): Promise<boolean> => {
      const page = await driver.logs(ref.id, { cursor });
      cursor = page.cursor;
      seen.push(...page.lines.flatMap(({ message }) => (message === "end" ? [] : [Number(message.split(" ")[0])])));
      return page.lines.some(({ message }) => message === "end");
    };
    for (let round = 0; round < rounds; round++) {
      await go(ref, round);
      // Each round is more than a log holds, so that each is set aside before the next begins.
      await until("all of it is read", async () => {
        await follow();
        return seen.length >= (round + 1) * lines;
      });
      const size = (): number => files(ref.id)["log"] ?? 0;
      await until("the log is set aside", () => size() < RUNC_LIMITS.log_bytes);
    }
    await until("its last word is read", async () => (await follow()) || (await last(ref.id)) === "end");
    assert.deepEqual(
      seen,
      Array.from({ length: rounds * lines }, (_, index) => index),
    );
    const { lines: kept } = await driver.logs(ref.id, { tail: rounds * lines + 1 });
    assert.equal(kept.length, rounds * lines + 1, "those of files that were archived are kept too");
    await driver.destroy(ref.id, never);
  });

  const last = async (id: string): Promise<string | undefined> =>
    (await driver.logs(id, { tail: 1 })).lines[0]?.message;

  test("a fast writer's log stays within its size limit, and its last lines are kept", async () => {
    const bytes = RUNC_LIMITS.log_bytes_alone * 3;
    const ref = await start(writer(1, Math.ceil(bytes / LINE_BYTES)));
    let most = 0;
    await go(ref, 0);
    await until("it has written everything", async () => {
      const now = Object.values(files(ref.id)).reduce((sum, size) => sum + size, 0);
      most = Math.max(most, now);
      return (await last(ref.id)) === "end";
    });
    // One that is written and one set aside, each at most as long as the monitor lets it get.
    assert.ok(most <= RUNC_LIMITS.log_bytes_alone * 2.1, `${most} bytes at once; ${warnings.text()}`);
    assert.ok(most >= RUNC_LIMITS.log_bytes, "it did write more than fits");
    await driver.destroy(ref.id, never);
  });
});
