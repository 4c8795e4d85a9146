/** `hangar launch`: an app file, and a Dockerfile where there is none, for the folder. */
import { existsSync, writeFileSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { createInterface } from "node:readline/promises";
import type { Table } from "../compose/read.ts";
import { type Context, type Input, numberOption, type Result, textOption, UsageError, type Verb } from "../verb.ts";
import { composeFile, composeFor } from "./compose.ts";
import { type Detected, detect } from "./detect.ts";

const NAME_CHARS = 63;
const HIGHEST_PORT = 65_535;

const IGNORED = [".git", "node_modules", ".venv", "__pycache__", "*.log", ".env", "hangar.toml"];

const launch: Verb = {
  words: "launch",
  summary: "Write hangar.toml, and a Dockerfile if there is none, for the app of this folder",
  arguments: [["[folder]", "the app's folder (default: this one)"]],
  options: [
    ["--name <app>", "the app's name (default: the folder's)"],
    [
      "--compose <file>",
      "deploy the services of this compose file (default: that of the folder, if it has no Dockerfile)",
    ],
    ["--port <port>", "the port that the app listens on (default: what the Dockerfile exposes, else 8080)"],
    ["--base <image>", "base image of the Dockerfile (default: one of `hangar images base`, else the usual one)"],
    ["--overwrite", "overwrite existing files without asking"],
    ["--dry-run", "print the files, and write none"],
  ],
  examples: ["hangar launch --dry-run"],
  async run(context, input) {
    const folder = resolve(input.args[0] ?? ".");
    const compose = composeFile(folder, textOption(input, "compose"));
    if (compose !== undefined) {
      const { name_in_file, file, ...said } = composeFor(folder, compose);
      const text = `${said.head}app = "${nameOf(input, name_in_file ?? folder)}"\n\n[compose]\nfile = ${JSON.stringify(file)}\n`;
      return await written(folder, [{ path: "hangar.toml", text }], said, input);
    }
    const found = detect(folder);
    const base = found.image && (textOption(input, "base") ?? (await ownBase(context, found)) ?? found.image.base);
    const files = filesOf(folder, found, { base, name: nameOf(input, folder), port: portOf(input, found) });
    const data = { kind: found.kind, why: found.why, ...(base === undefined ? {} : { base }), files };
    const finding = `Found ${foundIn(found)}.`;
    return await written(folder, files, { data, findings: finding, next: "look at them, then `hangar deploy`" }, input);
  },
};

const foundIn = ({ kind, why }: Detected): string => `${kind === "Dockerfile" ? "a Dockerfile" : kind}: ${why}`;

interface WrittenFile {
  path: string;
  text: string;
}

/** Writes the files, or only shows them in a dry run. */
async function written(
  folder: string,
  files: readonly WrittenFile[],
  { data: facts, findings, next }: { data: object; findings: string; next: string },
  input: Input,
): Promise<Result> {
  const data = { ...facts, files };
  if (input.options["dryRun"] === true) return { data, text: [findings, ...files.map(shown)].join("\n\n") };
  await refuseOverwriting(folder, files, input);
  for (const { path, text } of files) writeFileSync(join(folder, path), text);
  const names = files.map(({ path }) => path).join(", ");
  return { data, text: `${findings}\nwrote ${names}\nNext: ${next}` };
}

function filesOf(
  folder: string,
  found: Detected,
  { base, name, port }: { base: string | undefined; name: string; port: number },
): WrittenFile[] {
  const { image, check } = found;
  const toml = `# Written by \`hangar launch\`, which found ${foundIn(found)}.
app = "${name}"

[http_service]
internal_port = ${port}
auto_stop_machines = "suspend"  # suspend when idle, resume on a request
auto_start_machines = true

${check ? `[checks.health]  # the Dockerfile's HEALTHCHECK\n${entries(check)}` : `[checks.port]\n${entries(portCheck(port))}`}
`;
  return [
    { path: "hangar.toml", text: toml },
    ...(image && base !== undefined ? [{ path: "Dockerfile", text: image.dockerfile(base) }] : []),
    ...(image && !existsSync(join(folder, ".dockerignore"))
      ? [{ path: ".dockerignore", text: `${IGNORED.join("\n")}\n` }]
      : []),
  ];
}

const portCheck = (port: number): Table => ({ type: "tcp", port, interval: "5s", timeout: "2s", grace_period: "1s" });

const entries = (table: Table): string =>
  Object.entries(table)
    .map(([name, value]) => `${name} = ${JSON.stringify(value)}`)
    .join("\n");

const shown = ({ path, text }: WrittenFile): string => `--- ${path}\n${text.trimEnd()}`;

function nameOf(input: Input, folder: string): string {
  const given = textOption(input, "name");
  const name = (given ?? basename(folder))
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .replaceAll(/^-+|-+$/g, "")
    .slice(0, NAME_CHARS);
  if (name === "" || (given !== undefined && given !== name))
    throw new UsageError(`${given ?? folder} makes no name of an app: --name with letters, digits and dashes`);
  return name;
}

function portOf(input: Input, { port }: Detected): number {
  const given = numberOption(input, "port") ?? port;
  if (given < 1 || given > HIGHEST_PORT) throw new UsageError(`--port is 1 to ${HIGHEST_PORT}, not ${given}`);
  return given;
}

/** A base image that `hangar images base` made on the platform, so that no registry is needed. */
async function ownBase({ client, say }: Context, { kind }: Detected): Promise<string | undefined> {
  const prefix = `hangar/${kind.toLowerCase().split(" ")[0]}:`;
  try {
    for await (const { name } of client.list("GET /v1/images", {})) if (name.startsWith(prefix)) return name;
  } catch {
    say("the base images are not known: the platform does not respond, or there is no token");
  }
  return undefined;
}

/** Existing files are replaced only after confirmation. */
async function refuseOverwriting(folder: string, files: readonly WrittenFile[], input: Input) {
  const there = files.filter(({ path }) => existsSync(join(folder, path))).map(({ path }) => path);
  if (there.length === 0 || input.options["overwrite"] === true) return;
  const names = there.join(" and ");
  if (input.options["json"] === true || !process.stdin.isTTY || !process.stderr.isTTY)
    throw new UsageError(`${folder} has ${names}: add --overwrite to replace, or --dry-run to look`);
  const reader = createInterface({ input: process.stdin, output: process.stderr });
  try {
    const closed = new Promise<string>((end) => reader.once("close", () => end("")));
    const answer = await Promise.race([reader.question(`replace ${names}? y/N: `), closed]);
    if (!/^y(es)?$/i.test(answer.trim())) throw new UsageError("nothing was written");
  } finally {
    reader.close();
  }
}

export const VERBS: readonly Verb[] = [launch];
