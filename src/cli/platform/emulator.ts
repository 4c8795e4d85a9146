import type { Verb } from "../verb.ts";
import { textOption } from "../verb.ts";

const OPTIONS = [
  ["--listen <address>", "listen address (default: 127.0.0.1:4280; port 0 with a command)"],
  ["--control <address>", "address of the control API (default: a free port)"],
  ["--config <file>", "a config file of the platform: hosts, connectors, limits"],
  ["--state <file>", "start from a state saved by `hangar backup` or the emulator"],
  ["--time <time>", "initial time, such as 2030-01-01T00:00:00Z"],
] as const;

export const emulator: Verb = {
  words: "emulator",
  summary: "Run an in-memory emulator of the API for tests: no root, any system, a controllable clock",
  arguments: [
    ["[command...]", "run this command with HANGAR_URL and HANGAR_TOKEN set, and exit with its exit code; after --"],
  ],
  options: [
    ...OPTIONS,
    ["--frozen", "freeze the clock until it is advanced"],
    ["--metrics", "collect metrics of machines, with simulated values"],
  ],
  examples: ["hangar emulator -- sh -c 'curl -sf -H \"Authorization: Bearer $HANGAR_TOKEN\" $HANGAR_URL/v1/apps'"],
  async run({ runProgram }, input) {
    const names = OPTIONS.map(([flags]) => flags.split(" ")[0]?.slice(2) ?? "");
    const given = names.flatMap((name) => {
      const value = textOption(input, name);
      return value === undefined ? [] : [`--${name}`, value];
    });
    // A command gets the address in its environment, so any free port will do.
    const anywhere = input.rest.length > 0 && !given.includes("--listen") ? ["--listen", "127.0.0.1:0"] : [];
    const switches = ["frozen", "metrics"].flatMap((name) => (input.options[name] === true ? [`--${name}`] : []));
    const args = [...given, ...anywhere, ...switches, "--", ...input.rest];
    const { exit } = await runProgram("testing/main.ts", args, "foreground");
    return { data: null, text: "", exit };
  },
};
