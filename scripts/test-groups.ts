/** All tests, in two groups. Fast tests share one process; system tests (kills, power cuts, real servers) have one each. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, join, relative } from "node:path";
import { text } from "node:stream/consumers";

/** How large tests are: at every push, at night, and when there is a day. */
export const TIERS = ["push", "night", "soak"] as const;
export type Tier = (typeof TIERS)[number];

const root = join(import.meta.dirname, "..");

/**
 * System tests that a push does without, so that it is judged in five minutes: many kills and power cuts, boxes of several
 * hosts, every page of the documents. What they hold to is looked at by quicker tests too, in smaller numbers.
 */
export const NIGHT = new Set(
  `cli cli-db cli-people examples-real guides hosts-autostop hosts-loss hosts-network hosts-room hosts-together
  lease-clock metrics-crash metrics-damage metrics-differential metrics-postgres-machine metrics-remote package
  proxy-replace replication-crash-points replication-etcd replication-large replication-machines replication-power
  runc-abuse runc-kill runc-network runc-reboot runc-upgrade soak store-backup store-powercut tutorial tutorials
  volumes-crash-points volumes-kill web-load web-pages`.split(/\s+/),
);

/** System tests that take longest, at night or at a push: begun last, they would keep the run waiting for them alone. */
export const LONG =
  "mutation volumes-load volumes-cycles replication-kills runc-api cli-affordances store-migrate cli-deploy readme runc-crash".split(
    " ",
  );

/** Fast at a push, long at night, and in no hurry: they get processes of their own then, beside the system tests. */
export const LONG_AT_NIGHT = new Set(
  ["machines/model", "machines/interleaving", "machines/simulation", "replication/election/elector"].map(
    (name) => `src/${name}.test.ts`,
  ),
);

const nameOf = (file: string): string => basename(file, ".test.ts");

function testFiles(
  folder: string,
  { wanted, isLeftOut }: { wanted: readonly string[]; isLeftOut: (file: string) => boolean },
): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".test.ts"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((file) => (wanted.length === 0 ? !isLeftOut(file) : wanted.some((text) => file.includes(text))))
    .sort((a, b) => rank(a) - rank(b) || (a < b ? -1 : 1));
}

function rank(file: string): number {
  const at = isSystem(file) ? LONG.indexOf(nameOf(file)) : -1;
  return at < 0 ? LONG.length : at;
}

const isSystem = (file: string): boolean => file.startsWith("test/system/");

interface Group {
  name: string;
  files: string[];
  flags: string[];
}

interface Wish {
  tier: Tier;
  /** Also what a push does without. */
  all?: boolean;
  watching?: Watching;
}

export interface Watching {
  /** A module that is told what the tests say, and the file that takes its words. */
  reporter: { module: string; file: string };
  /** Called after each group. */
  done(): void;
}

/** Runs the files whose path holds one of these texts, or those of the tier. Answers whether all went well. */
export async function runTests(
  wanted: readonly string[],
  { tier, all = tier !== "push", watching }: Wish,
): Promise<boolean> {
  const isLeftOut = (file: string): boolean => !all && isSystem(file) && NIGHT.has(nameOf(file));
  const files = ["src", "test"].flatMap((folder) => testFiles(folder, { wanted, isLeftOut }));
  if (files.length === 0) {
    process.stderr.write(`no test file has ${wanted.join(" or ")} in its path\n`);
    return false;
  }
  const isApart = (file: string): boolean => isSystem(file) || (tier !== "push" && LONG_AT_NIGHT.has(file));
  const [fast, system] = [files.filter((file) => !isApart(file)), files.filter(isApart)];
  // System tests wait a good part of their time, so one more than there are cores.
  const lanes = `--test-concurrency=${availableParallelism() + 1}`;
  const groups: Group[] = [
    { name: "system tests", files: system, flags: [lanes] },
    { name: "fast tests", files: fast, flags: ["--test-isolation=none"] },
  ].filter((group) => group.files.length > 0);
  // A proof keeps times to the letter, so nothing else runs beside it; at a push nothing depends on them.
  if (tier !== "push" || watching) {
    const results: boolean[] = [];
    for (const group of groups.toReversed()) results.push(await run(group, tier, watching));
    return results.every(Boolean);
  }
  return (await Promise.all(groups.map((group, at) => run(group, tier, undefined, at > 0)))).every(Boolean);
}

/** Runs one group. What it says is shown as it comes, or `later`, whole: two that speak at once are not understood. */
async function run({ name, files, flags }: Group, tier: Tier, watching?: Watching, later = false): Promise<boolean> {
  // A test that failed may leave something open: the run still ends, with that failure in it. Proofs take their time.
  const ending = ["--test-force-exit", ...(tier === "push" ? [`--test-timeout=${10 * 60_000}`] : [])];
  const shown = process.env["CI"] || process.stdout.isTTY ? "spec" : "dot";
  const reporters = [
    [shown, "stdout"],
    ...(watching ? [[watching.reporter.module, watching.reporter.file]] : []),
  ].flatMap(([reporter, place]) => [`--test-reporter=${reporter}`, `--test-reporter-destination=${place}`]);
  const env = { ...process.env, ...(tier === "push" ? {} : { HANGAR_PROVE: tier }) };
  const head = `\n== ${name} (${files.length} files)\n`;
  if (!later) process.stdout.write(head);
  const child = spawn(process.execPath, ["--test", ...flags, ...ending, ...reporters, ...files], {
    cwd: root,
    stdio: ["inherit", later ? "pipe" : "inherit", "inherit"],
    env,
  });
  const ended = once(child, "exit") as Promise<[number | null]>;
  if (child.stdout) process.stdout.write(head + (await text(child.stdout)));
  const [status] = await ended;
  watching?.done();
  return status === 0;
}
