import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { DownReport } from "#core/kernel-objects.ts";
import { flagName, SETTINGS } from "#core/settings.ts";
import { facts } from "../output.ts";
import { firstArgument, UsageError, type Verb } from "../verb.ts";
import { downText, exitOfDown } from "./kernel.ts";
import { isPlatform, runningPlatform } from "./running.ts";

export const up: Verb = {
  words: "up",
  summary: "Run the platform in the foreground, like `npm start`",
  arguments: [["[settings...]", "settings as flags"]],
  passes_on: true,
  details: () => {
    const rows = Object.entries(SETTINGS).map(([name, { words }]): [string, string] => [`  ${flagName(name)}`, words]);
    return `Settings, also as HANGAR_… in the environment and in a file (docs/settings.md):\n${facts(rows)}`;
  },
  examples: ["hangar up", "hangar up --listen 127.0.0.1:0"],
  async run({ runProgram }, input) {
    const { exit } = await runProgram("main.ts", input.rest, "foreground");
    return { data: null, text: "", exit };
  },
};

export const backup: Verb = {
  words: "backup",
  summary: "Back up the platform's database and settings, while it runs or not",
  arguments: [["<file>", "destination; an existing file is not overwritten"]],
  examples: ["hangar backup hangar.backup"],
  async run({ runProgram, data_dir }, input) {
    const file = resolve(firstArgument(input));
    const { exit, text } = await runProgram("main.ts", ["backup", file, "--data-dir", data_dir], "quiet");
    return { data: { file, ok: exit === 0 }, text, exit };
  },
};

export const restore: Verb = {
  words: "restore",
  summary: "Restore a backup into an empty data dir",
  arguments: [["<file>", "output of `hangar backup`"]],
  examples: ["hangar restore hangar.backup --data-dir ./restored"],
  async run({ runProgram, data_dir }, input) {
    const { exit, text } = await runProgram(
      "main.ts",
      ["restore", resolve(firstArgument(input)), "--data-dir", data_dir],
      "quiet",
    );
    return { data: { data_dir, ok: exit === 0 }, text, exit };
  },
};

/** Timeout for the platform to stop. */
const STOP_MS = 30_000;
const LOOK_MS = 100;

export const down: Verb = {
  words: "down",
  summary: "Stop the platform; machines keep running, unless --all stops them too",
  options: [
    [
      "--all",
      "also stop every machine and close every volume; list remaining kernel objects and the programs that hold them",
    ],
  ],
  examples: ["hangar down", "hangar down --all"],
  async run({ runProgram, data_dir, say }, input) {
    const stopped = await stopPlatform(data_dir);
    if (stopped) say(`stopped the platform (pid ${stopped})`);
    if (input.options["all"] !== true) {
      const text = stopped
        ? "Stopped. Machines keep running; the next start adopts them."
        : `No platform runs on ${data_dir}.`;
      return { data: { stopped: stopped !== undefined }, text };
    }
    if (!existsSync(`${data_dir}/node_id`))
      return { data: { stopped: false, ok: true }, text: `No platform in ${data_dir}.` };
    const { exit, text } = await runProgram("main.ts", ["down", "--data-dir", data_dir], "quiet");
    if (exit !== 0) return { data: { stopped: stopped !== undefined, ok: false }, text, exit };
    const report = JSON.parse(text) as DownReport;
    const left = exitOfDown(report);
    return { data: { stopped: stopped !== undefined, ok: left === 0, ...report }, text: downText(report), exit: left };
  },
};

/** Sends SIGTERM to the platform of a data dir and waits until it has stopped; undefined when none runs. */
async function stopPlatform(data_dir: string): Promise<number | undefined> {
  const pid = runningPlatform(data_dir);
  if (pid === undefined) return undefined;
  process.kill(pid, "SIGTERM");
  for (let waited = 0; isPlatform(pid); waited += LOOK_MS) {
    if (waited > STOP_MS) throw new UsageError(`the platform (pid ${pid}) has not stopped within ${STOP_MS / 1000} s`);
    await delay(LOOK_MS);
  }
  return pid;
}
