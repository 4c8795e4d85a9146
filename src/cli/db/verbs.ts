import { firstArgument, type Input, textOption, UsageError, type Verb } from "../verb.ts";

/** Options of `db node` that are handed on as they are. */
const NODE_OPTIONS: readonly (readonly [string, string])[] = [
  ["--dir <dir>", "the databases are the files in this folder (required)"],
  ["--listen <address>", "address of /events and of the other nodes (default: 127.0.0.1:20202)"],
  ["--primary", "this node is the primary, always"],
  ["--join <url>", "this node follows the node at this address, always"],
  ["--lease <where>", "whoever has the lease is primary: sqlite:PATH or etcd:http://host:2379/NAME"],
  ["--no-candidate", "with --lease: follow, but never become primary"],
  ["--advertise <url>", "where other nodes reach this one"],
  ["--backup <dir>", "while primary, copy transactions there, for `db restore`"],
  ["--key-file <file>", "a key the nodes share (or HANGAR_DB_KEY)"],
];

export const dbNode: Verb = {
  words: "db node",
  summary: "Run a node of a replicated SQLite, in the foreground",
  options: NODE_OPTIONS,
  examples: ["hangar db node --dir ./data --listen 127.0.0.1:20202 --primary"],
  async run({ runProgram }, input) {
    if (!textOption(input, "dir")) throw new UsageError("say where the databases are: --dir <dir>");
    const { exit } = await runProgram(
      "replication/main.ts",
      NODE_OPTIONS.flatMap(([flags]) => handedOn(flags, input)),
      "foreground",
    );
    return { data: null, text: "", exit };
  },
};

/** An option as it was given, or nothing. Commander turns `--no-x` into `x: false`. */
function handedOn(flags: string, { options }: Input): string[] {
  const name = /--([\w-]+)/.exec(flags)?.[1] ?? "";
  const negated = name.startsWith("no-");
  const key = (negated ? name.slice(3) : name).replaceAll(/-(\w)/g, (_, letter: string) => letter.toUpperCase());
  const value = options[key];
  if (negated) return value === false ? [`--${name}`] : [];
  if (value === true) return [`--${name}`];
  return typeof value === "string" ? [`--${name}`, value] : [];
}

const NODE: readonly [string, string] = ["<node>", "the node's address, for example http://127.0.0.1:20202"];

/** A verb whose program prints one JSON object. */
function admin(
  words: string,
  summary: string,
  more: Pick<Verb, "arguments" | "options" | "examples">,
  argsOf: (input: Input) => string[],
): Verb {
  return {
    words,
    summary,
    ...more,
    async run({ runProgram }, input) {
      const verb = words.split(" ")[1] ?? "";
      const { exit, text } = await runProgram("replication/admin.ts", [verb, ...argsOf(input)], "quiet");
      return { data: text === "" ? null : (JSON.parse(text) as unknown), text, exit };
    },
  };
}

export const dbInfo = admin(
  "db info",
  "What a node says about itself",
  { arguments: [NODE], examples: ["hangar db info $DB_NODE"] },
  (input) => [firstArgument(input)],
);

export const dbPromote = admin(
  "db promote",
  "Make a node the primary; the one before hands over without loss",
  {
    arguments: [NODE],
    options: [["--key-file <file>", "a key the nodes share (or HANGAR_DB_KEY)"]],
    examples: ["hangar db promote $DB_NODE"],
  },
  (input) => [firstArgument(input), ...given(textOption(input, "keyFile"))],
);

export const dbRestore = admin(
  "db restore",
  "Make a database file from a backup, as of a moment or a transaction",
  {
    arguments: [
      ["<backup>", "the folder `db node --backup` copied to"],
      ["<name>", "the database's name"],
      ["<file>", "the file to make; it must not exist"],
    ],
    options: [
      ["--at <time>", "as of this moment, for example 2026-01-02T03:04:05Z"],
      ["--txid <hex>", "as of this transaction"],
    ],
    examples: ["hangar db restore $DB_BACKUP app.db restored.db"],
  },
  (input) => [
    ...input.args.flatMap(given),
    ...flag("--at", textOption(input, "at")),
    ...flag("--txid", textOption(input, "txid")),
  ],
);

const given = (text: string | undefined): string[] => (text === undefined ? [] : [text]);
const flag = (name: string, value: string | undefined): string[] => (value === undefined ? [] : [name, value]);
