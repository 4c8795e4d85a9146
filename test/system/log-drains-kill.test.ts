/** Log drains while the process that sends and the receiver are killed again and again. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { appendFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { AT, logHost, logLine } from "#drivers/runtime/runc/logs/fixtures.ts";
import { logReceiver, lokiMessages } from "../log-receiver.ts";
import { random, runs, seed, until } from "../support.ts";

const SENDER = join(import.meta.dirname, "log-drains-sender.ts");
/** More than a file holds. */
const LINES = 75_000;

suite("log drains and kill -9", { timeout: 10 * 60_000 }, () => {
  test("every line arrives, in order of its machine, whatever is killed at any moment", async (t) => {
    const next = random(seed(t));
    // A receiver that is killed has taken the lines or not; the sender is not told in either case.
    const deaths = { before: 0, after: 0 };
    let requests = 0;
    const { url, received } = await logReceiver(t, (request) => {
      requests++;
      const fate = next();
      if (fate > 0.3) return { status: 204 };
      if (fate > 0.15) {
        deaths.before++;
        return { status: 500 };
      }
      deaths.after++;
      received.push(request);
      return { status: 500 };
    });
    const { layout, machine } = logHost();
    const machines = ["m1", "m2"].map((id) => ({ id, paths: machine(id), written: 0 }));
    const write = (one: (typeof machines)[number], count: number): void => {
      const numbers = Array.from({ length: count }, (_, index) => one.written + index);
      appendFileSync(one.paths.log, numbers.map((number) => logLine(AT + number, `${number} words`)).join(""));
      one.written += count;
    };
    const start = async () => {
      const args = [SENDER, layout.data, layout.containers, layout.logs, url];
      const child = spawn(process.execPath, args, { stdio: ["ignore", "pipe", "inherit"] });
      await once(child.stdout, "data");
      return child;
    };
    let killed = 0;
    for (let round = 0; round < runs(10); round++) {
      // As a monitor, which opens its log again at its next line, and replaces no file that is not archived yet.
      for (const one of machines) write(one, existsSync(`${one.paths.log}.1`) ? 500 : LINES);
      const before = requests;
      const child = await start();
      const exited = once(child, "exit");
      await until("it sends", () => requests > before);
      await delay(next() * 100);
      child.kill("SIGKILL");
      await exited;
      killed++;
    }
    const child = await start();
    t.after(() => child.kill("SIGKILL"));
    for (const { id, written } of machines)
      await until(`all of ${id} arrives`, () => lokiMessages(received, id).at(-1) === `${written - 1} words`);
    for (const { id, written } of machines) {
      const numbers = lokiMessages(received, id).map((message) => Number(message.split(" ")[0]));
      const wanted = Array.from({ length: written }, (_, index) => index);
      assert.deepEqual([...new Set(numbers)], wanted, `${id}: each, and for the first time in order`);
      t.diagnostic(`${id}: ${written} lines, ${numbers.length - written} of them twice`);
    }
    t.diagnostic(`${killed} kills of the sender, ${deaths.before} and ${deaths.after} of the receiver`);
    assert.ok(deaths.before + deaths.after > 0);
  });
});
