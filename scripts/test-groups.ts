/** All tests, in two groups. Fast tests share a process for each core; system tests (kills, power cuts, real servers) have one each. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { availableParallelism } from "node:os";
import { basename, join, relative } from "node:path";
import { text } from "node:stream/consumers";
import type { EndedTest } from "./test-run/reporter.ts";
import { RunFolder, signal } from "./test-run/run-folder.ts";
import { summaryOf } from "./test-run/summary.ts";

/** How large tests are: at every push, at night, and when there is a day. */
export const TIERS = ["push", "night", "soak"] as const;
export type Tier = (typeof TIERS)[number];

const root = join(import.meta.dirname, "..");

/**
 * System tests that a push does without, so that it is judged in five minutes: many kills and power cuts, boxes of several
 * hosts, every page of the documents. What they hold to is looked at by quicker tests too, in smaller numbers.
 */
export const NIGHT = new Set(
  `box-runtime box-service box-tour builds builds-hosts builds-kill builds-tenancy cli cli-affordances cli-db cli-people compose-shop
  deploy-machines deploy-under-load deploy-your-own-app deployments down-installations examples-real floods fly-go
  flyctl flyctl-build git-ci git-previews git-push git-webhooks guides
  hosts-autostop hosts-database-away hosts-faults hosts-images hosts-network hosts-room hosts-terminal hosts-together
  http-judges launch-folders images-odd lease-clock log-drains-judges log-drains-kill metrics-crash metrics-damage metrics-differential metrics-postgres-machine
  metrics-remote openapi-clients package postgres postgres-failover postgres-faults proxy-last-known proxy-replace registry-judges replication-busy
  replication-crash-points replication-etcd replication-events replication-failover replication-foreign
  replication-large replication-ltx replication-machines replication-overwritten replication-power replication-proxy
  replication-snapshot runc-abuse runc-kill runc-network runc-reboot runc-upgrade runs rules-prometheus scale slow-bodies soak sprites-hosts sqlite-attach sqlite-backup sqlite-images store-backup
  store-damage store-faults store-powercut tutorial tutorials volumes-crash-points volumes-kill web-apps web-databases web-deploy
  web-hostile web-hostile-streams web-large web-layout web-load web-machines web-pages web-screens`.split(/\s+/),
);

/** Fast at a push, long at night, and in no hurry: they get processes of their own then, beside the system tests. */
export const LONG_AT_NIGHT = new Set(
  ["machines/model", "machines/interleaving", "machines/simulation", "replication/election/elector"].map(
    (name) => `src/${name}.test.ts`,
  ),
);

/**
 * As a proof, each of them has the host to itself: what it holds to is a time as a person sees it, or it runs a whole system,
 * which takes a processor where that is emulated.
 */
export const TIMED = new Set(["web-load", "box-runtime", "box-service", "box-tour"]);

const nameOf = (file: string): string => basename(file, ".test.ts");

function testFiles(
  folder: string,
  { wanted, isLeftOut }: { wanted: readonly string[]; isLeftOut: (file: string) => boolean },
): string[] {
  return readdirSync(join(root, folder), { recursive: true, withFileTypes: true })
    .filter((entry) => entry.isFile() && entry.name.endsWith(".test.ts"))
    .map((entry) => relative(root, join(entry.parentPath, entry.name)))
    .filter((file) => (wanted.length === 0 ? !isLeftOut(file) : wanted.some((text) => file.includes(text))))
    .sort();
}

const isSystem = (file: string): boolean => file.startsWith("test/system/");

interface Group {
  name: string;
  files: string[];
  flags: string[];
}

interface RunInput {
  tier: Tier;
  /** Also what a push does without. */
  all?: boolean;
  /** Only tests with this text in their name, or in that of a suite around them. */
  only?: string | undefined;
  watching?: Watching | undefined;
}

interface Run extends RunInput {
  folder: RunFolder;
  /** The first process of each group that runs. */
  running: Set<number>;
  /** The end of a run that was broken off; it ends the process. */
  ending?: Promise<never>;
}

export interface Watching {
  /** A module that is told what the tests say. */
  reporter: string;
  /** The file that takes its words about a group. */
  fileOf(group: string): string;
  /** Called after each group. */
  done(group: string): void;
}

/** Runs the files whose path holds one of these texts, or those of the tier. Answers whether all went well. */
export async function runTests(
  wanted: readonly string[],
  { tier, all = tier !== "push", only, watching }: RunInput,
): Promise<boolean> {
  const isLeftOut = (file: string): boolean => !all && isSystem(file) && NIGHT.has(nameOf(file));
  const files = ["src", "test"].flatMap((folder) => testFiles(folder, { wanted, isLeftOut }));
  if (files.length === 0) {
    process.stderr.write(`no test file has ${wanted.join(" or ")} in its path\n`);
    return false;
  }
  const began = performance.now();
  const folder = new RunFolder();
  const run: Run = { tier, only, watching, folder, running: new Set() };
  endWithSignals(run);
  const passed = await runFiles(files, run);
  await run.ending;
  const tests = readEnded(folder);
  process.stdout.write(summaryOf(tests, { seconds: (performance.now() - began) / 1000, root }));
  folder.remove();
  return passed;
}

/** A run that is broken off ends with all that it started. */
function endWithSignals(run: Run): void {
  const { folder, running } = run;
  const end = async (name: NodeJS.Signals): Promise<never> => {
    for (const pid of running) signal(-pid, "SIGKILL");
    // Clearing waits on timers that would not keep the process.
    setInterval(() => {}, 1000);
    await folder.clear();
    process.stdout.write(`\nended by ${name}\n`);
    process.exit(name === "SIGINT" ? 130 : 143);
  };
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const)
    process.once(name, () => {
      run.ending = end(name);
    });
}

/** What every group's tests came to. */
function readEnded(folder: RunFolder): EndedTest[] {
  const files = readdirSync(folder.path).filter((name) => name.endsWith(ENDED));
  const lines = files.flatMap((name) => readFileSync(join(folder.path, name), "utf8").split("\n").filter(Boolean));
  return lines.map((line) => JSON.parse(line) as EndedTest);
}

const ENDED = ".ended.jsonl";

async function runFiles(files: readonly string[], run: Run): Promise<boolean> {
  const { tier, watching } = run;
  const isApart = (file: string): boolean => isSystem(file) || (tier !== "push" && LONG_AT_NIGHT.has(file));
  const isTimed = (file: string): boolean => tier !== "push" && isSystem(file) && TIMED.has(nameOf(file));
  const fast = files.filter((file) => !isApart(file));
  const system = files.filter((file) => isApart(file) && !isTimed(file));
  // System tests wait a good part of their time, so one more than there are cores.
  const lanes = `--test-concurrency=${availableParallelism() + 1}`;
  const systemGroup = { name: "system tests", files: system, flags: [lanes] };
  // As many processes as cores: one alone would be at work long after the system tests.
  const fastGroups = shares({ name: "fast tests", files: fast, flags: ["--test-isolation=none"] });
  // A proof keeps times to the letter, so fast tests have a core each; at a push nothing depends on them.
  if (tier === "push" && !watching) return await together([systemGroup, ...fastGroups], run);
  const timedGroup = { name: "timed tests", files: files.filter(isTimed), flags: ["--test-concurrency=1"] };
  let proved = true;
  for (const groups of [fastGroups, [systemGroup], [timedGroup]]) proved = (await together(groups, run)) && proved;
  return proved;
}

/** A group, dealt out into as many as there are cores. */
function shares({ name, files, flags }: Group): Group[] {
  const count = availableParallelism();
  return Array.from({ length: count }, (_, share) => ({
    name: `${name}, ${share + 1} of ${count}`,
    files: files.filter((_, at) => at % count === share),
    flags,
  }));
}

async function together(groups: readonly Group[], run: Run): Promise<boolean> {
  const some = groups.filter(({ files }) => files.length > 0);
  return (await Promise.all(some.map((group, at) => runGroup(group, run, at > 0)))).every(Boolean);
}

/** Runs one group. What it says is shown as it comes, or `later`, whole: two that speak at once are not understood. */
async function runGroup({ name, files, flags }: Group, run: Run, later: boolean): Promise<boolean> {
  const { tier, only, watching, folder, running } = run;
  // A test that failed may leave something open: the run still ends, with that failure in it. Proofs take their time.
  const ending = ["--test-force-exit", ...(tier === "push" ? [`--test-timeout=${10 * 60_000}`] : [])];
  const named = only === undefined ? [] : [`--test-name-pattern=${only}`];
  const shown = process.env["CI"] || process.stdout.isTTY ? "spec" : "dot";
  const ended = [join(import.meta.dirname, "test-run/reporter.ts"), join(folder.path, `${name}${ENDED}`)];
  const reporters = [
    [shown, "stdout"],
    ended,
    ...(watching ? [[watching.reporter, watching.fileOf(name)]] : []),
  ].flatMap(([reporter, place]) => [`--test-reporter=${reporter}`, `--test-reporter-destination=${place}`]);
  const env = { ...folder.environment(), ...(tier === "push" ? {} : { HANGAR_PROVE: tier }) };
  const head = `\n== ${name} (${files.length} files)\n`;
  if (!later) process.stdout.write(head);
  const child = spawn(process.execPath, ["--test", ...flags, ...ending, ...named, ...reporters, ...files], {
    cwd: root,
    stdio: ["ignore", later ? "pipe" : "inherit", "inherit"],
    env,
    // A group of its own, so that a signal reaches every process of it, and no terminal ends only some of them.
    detached: true,
  });
  const pid = child.pid ?? 0;
  running.add(pid);
  const exited = once(child, "exit") as Promise<[number | null]>;
  if (child.stdout) process.stdout.write(head + (await text(child.stdout)));
  const [status] = await exited;
  running.delete(pid);
  watching?.done(name);
  return status === 0;
}
