/** Logs while the process that rotates and archives them is killed again and again. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { AT, logHost, logLine } from "#drivers/runtime/runc/logs/fixtures.ts";
import { readLog } from "#drivers/runtime/runc/logs/logs.ts";
import { random, runs, seed } from "../support.ts";

const KEEPER = join(import.meta.dirname, "logs-keeper.ts");
const LINES = 75_000;

suite("logs and kill -9", () => {
  test("no line is lost or read twice when rotating or archiving is killed at any moment", async (t) => {
    const next = random(seed(t));
    const { layout, machine } = logHost();
    const paths = machine("m1");
    let written = 0;
    const write = (count: number): void => {
      const lines = Array.from({ length: count }, (_, index) =>
        logLine(AT + written + index, `${written + index} words`),
      );
      appendFileSync(paths.log, lines.join(""));
      written += count;
    };
    let killed = 0;
    for (let round = 0; round < runs(12); round++) {
      // A monitor opens its log again at its next line; a file is full only when the one before is archived.
      write(existsSync(`${paths.log}.1`) ? 10 : LINES);
      if (round % 3 === 2) write(LINES);
      const child = spawn(process.execPath, [KEEPER, layout.data, layout.containers], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const exited = once(child, "exit");
      await once(child.stdout, "data");
      await delay(next() * 150);
      child.kill("SIGKILL");
      const [, signal] = (await exited) as [number | null, string | null];
      if (signal === "SIGKILL") killed++;
      const { lines } = await readLog(paths, { tail: 1e9 }, (file, error) => assert.fail(`${file}: ${String(error)}`));
      assert.deepEqual(
        lines.map(({ message }) => Number(message.split(" ")[0])),
        Array.from({ length: written }, (_, index) => index),
        `after kill ${round}`,
      );
    }
    const archived = readdirSync(paths.logs).filter((name) => name.endsWith(".zst"));
    t.diagnostic(`${killed} kills, ${written} lines, ${archived.length} archived files`);
    assert.ok(killed > 0);
  });
});
