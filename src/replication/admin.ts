/**
 * `hangar db promote|info|restore` as a program of its own. Prints one JSON object; a mistake is one line on
 * stderr.
 *
 *   admin.ts promote URL [KEY-FILE]
 *   admin.ts info URL
 *   admin.ts restore BACKUP-DIR NAME FILE [--at TIME | --txid HEX]
 */
import { readFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { messageOf } from "#core/assert.ts";
import { isoTime, systemClock } from "#core/clock.ts";
import { nodeInfo, promoteNode, restoreFrom } from "./commands.ts";
import { formatPosition } from "./position.ts";

type Flags = { at?: string; txid?: string };

const VERBS: Record<string, (args: string[], flags: Flags) => Promise<unknown>> = {
  promote: ([url = "", key_file]) => promoteNode(origin(url), keyOf(key_file), systemClock),
  info: ([url = ""]) => nodeInfo(origin(url), systemClock),
  async restore([backup_dir = "", name = "", to = ""], { at, txid }) {
    const moment = at === undefined ? {} : { at_ms: timeOf(at) };
    const transaction = txid === undefined ? {} : { txid: Number.parseInt(txid, 16) };
    const { position, timestamp_ms } = await restoreFrom(backup_dir, { name, to, ...moment, ...transaction });
    return { file: to, position: formatPosition(position), written_at: isoTime(timestamp_ms) };
  },
};

function origin(url: string): string {
  if (!URL.canParse(url))
    throw new Error(`${JSON.stringify(url)} is not a node's address such as http://127.0.0.1:20202`);
  return new URL(url).origin;
}

function keyOf(file: string | undefined): string | undefined {
  return file === undefined ? process.env["HANGAR_DB_KEY"] : readFileSync(file, "utf8").trim();
}

function timeOf(text: string): number {
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw new Error(`${JSON.stringify(text)} is not a time such as 2026-01-02T03:04:05Z`);
  return ms;
}

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({
    allowPositionals: true,
    options: { at: { type: "string" }, txid: { type: "string" } },
  });
  const [verb = "", ...args] = positionals;
  const run = VERBS[verb];
  if (!run) throw new Error(`there is ${Object.keys(VERBS).join(", ")}, not ${JSON.stringify(verb)}`);
  process.stdout.write(`${JSON.stringify(await run(args, values), undefined, 2)}\n`);
}

main().catch((error: unknown) => {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exit(1);
});
