import { resolve } from "node:path";
import { firstArgument, type Verb } from "../verb.ts";

export const up: Verb = {
  words: "up",
  summary: "Run the platform in the foreground, like `npm start`",
  arguments: [["[settings...]", "settings as flags, after --"]],
  examples: ["hangar up -- --listen 127.0.0.1:0"],
  async run({ runProgram }, input) {
    const { exit } = await runProgram("main.ts", input.rest, "foreground");
    return { data: null, text: "", exit };
  },
};

export const backup: Verb = {
  words: "backup",
  summary: "Write a consistent copy of everything, while the platform runs or not",
  arguments: [["<file>", "where to; never overwritten"]],
  examples: ["hangar backup hangar.backup"],
  async run({ runProgram, data_dir }, input) {
    const file = resolve(firstArgument(input));
    const { exit, text } = await runProgram("main.ts", ["backup", file, "--data-dir", data_dir], "quiet");
    return { data: { file, ok: exit === 0 }, text, exit };
  },
};

export const restore: Verb = {
  words: "restore",
  summary: "Fill an empty data dir from a copy",
  arguments: [["<file>", "a file that `hangar backup` wrote"]],
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
