/**
 * `hangar db info|status|doctor|bench|wait|promote|export|import|backups|restore` as a program of its own. Prints one JSON object; a mistake is one
 * line on stderr.
 *
 *   admin.ts info URL
 *   admin.ts status URL…
 *   admin.ts doctor [--dir DIR] URL…
 *   admin.ts bench URL [--seconds N] [--synchronous FULL|NORMAL]
 *   admin.ts wait URL NAME [TXID] [--timeout TIME]
 *   admin.ts promote URL [--force]
 *   admin.ts export URL NAME FILE
 *   admin.ts import URL NAME FILE
 *   admin.ts backups WHERE
 *   admin.ts restore WHERE NAME FILE [--at TIME | --txid HEX]
 *   admin.ts restore WHERE NAME --into URL [--at TIME | --txid HEX]
 */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { messageOf } from "#core/assert.ts";
import { isoTime, systemClock } from "#core/clock.ts";
import { restorable } from "./backup/list.ts";
import { momentIn } from "./backup/moment.ts";
import { restore } from "./backup/restore.ts";
import { backupAt, CREDENTIAL_OPTIONS, credentialsFrom, nodeAddress } from "./flags.ts";
import { bench } from "./inspect/bench.ts";
import { examine, examineFolder } from "./inspect/doctor.ts";
import { type Survey, statusOf, survey } from "./inspect/survey.ts";
import { NodeClient } from "./node-client.ts";
import { formatPosition } from "./position.ts";

const OPTIONS = {
  at: { type: "string" },
  txid: { type: "string" },
  into: { type: "string" },
  timeout: { type: "string" },
  dir: { type: "string" },
  seconds: { type: "string" },
  synchronous: { type: "string" },
  force: { type: "boolean", default: false },
  ...CREDENTIAL_OPTIONS,
} as const;

type Flags = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>["values"];

const VERBS: Record<string, (args: string[], flags: Flags) => Promise<unknown>> = {
  info: async ([url = ""], flags) => (await nodeAt(url, flags)).info(),
  status: async (urls) => ({ nodes: statusOf(await surveyOf(urls)) }),
  async doctor(urls, { dir }) {
    const found = await surveyOf(urls);
    const here = dir === undefined ? [] : examineFolder(dir, Object.keys(found.primary?.databases ?? {}));
    return { nodes: found.nodes.length, findings: [...examine(found), ...here] };
  },
  async bench(urls, { seconds = "5", synchronous = "FULL" }) {
    if (!(Number(seconds) > 0 && Number(seconds) <= 600)) throw new Error("--seconds is a number up to 600");
    if (synchronous !== "FULL" && synchronous !== "NORMAL") throw new Error("--synchronous is FULL or NORMAL");
    return await bench(await surveyOf(urls), { seconds: Number(seconds), clock: systemClock, synchronous });
  },
  async wait([url = "", db = "", txid], { timeout, ...flags }) {
    const query = { db, ...(txid === undefined ? {} : { txid }), ...(timeout === undefined ? {} : { timeout }) };
    return await (await nodeAt(url, flags)).wait(query);
  },
  promote: async ([url = ""], flags) => (await nodeAt(url, flags)).promote(flags),
  async export([url = "", name = "", file = ""], flags) {
    return { file, position: await (await nodeAt(url, flags)).exportTo(name, file) };
  },
  import: async ([url = "", name = "", file = ""], flags) => (await nodeAt(url, flags)).importFrom(name, file),
  async backups([where = ""]) {
    return { databases: await restorable(await backupAt(where, systemClock)) };
  },
  async restore([where = "", name = "", to = ""], flags) {
    const { into } = flags;
    if ((into === undefined) === (to === ""))
      throw new Error("say where to: a file that does not exist, or --into and the primary's address");
    if (into === undefined) return await restoreTo(where, name, to, flags);
    const node = await nodeAt(into, flags);
    const dir = mkdtempSync(join(tmpdir(), "hangar-restore-"));
    try {
      const { written_at } = await restoreTo(where, name, join(dir, "restored"), flags);
      return { ...((await node.importFrom(name, join(dir, "restored"))) as object), into, written_at };
    } finally {
      rmSync(dir, { recursive: true, force: true });
    }
  },
};

async function restoreTo(where: string, name: string, to: string, moment: Flags): Promise<Restored> {
  const store = await backupAt(where, systemClock);
  const { position, timestamp_ms } = await restore({ store, name, to, ...momentIn(moment) });
  return { file: to, position: formatPosition(position), written_at: isoTime(timestamp_ms) };
}

interface Restored {
  file: string;
  position: string;
  written_at: string;
}

async function surveyOf(urls: readonly string[]): Promise<Survey> {
  return await survey(
    urls.map((url) => nodeAddress("<node>", url)),
    systemClock,
  );
}

async function nodeAt(url: string, flags: Flags): Promise<NodeClient> {
  return new NodeClient(nodeAddress("<node>", url), systemClock, await credentialsFrom(flags));
}

async function main(): Promise<void> {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: OPTIONS });
  const [verb = "", ...args] = positionals;
  const run = VERBS[verb];
  if (!run) throw new Error(`there is ${Object.keys(VERBS).join(", ")}, not ${JSON.stringify(verb)}`);
  process.stdout.write(`${JSON.stringify(await run(args, values), undefined, 2)}\n`);
}

main().catch((error: unknown) => {
  process.stderr.write(`${messageOf(error)}\n`);
  process.exit(1);
});
