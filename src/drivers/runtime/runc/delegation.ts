/**
 * The location of machines' cgroups. Where systemd runs, it owns the cgroup tree and delegates a part on request: a
 * scope with `Delegate=yes` below `hangar.slice`, one per installation. In it are `machines`, with a cgroup for each,
 * and `helpers`: the programs that outlive us (monitors, lxcfs, the fence's guard) and one that holds the scope open.
 * So a stop or restart of the platform's own unit, however it is done, affects the platform only. Without systemd the
 * cgroups are in `/hangar/<installation>`.
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Clock } from "#core/clock.ts";
import { holdLock } from "#core/file-lock.ts";
import { CLAIMS_DIR } from "#core/host-claims.ts";
import { programFile } from "../../choice.ts";
import { keepHelpersIn, outliving } from "../../linux/outlive.ts";
import { program } from "../../linux/program.ts";
import { cgroupDirs, processesIn, removeCgroup } from "./cgroup.ts";

const SLICE = "hangar.slice";
const scopeName = (node_id: string): string => `hangar-${node_id}.scope`;
const scopePath = (node_id: string): string => `/${SLICE}/${scopeName(node_id)}`;
const plainPath = (node_id: string): string => `/hangar/${node_id}`;

/** Whether systemd manages this host's cgroups (as `sd_booted` checks) and can delegate some. */
export function systemdRuns(): boolean {
  if (!existsSync("/run/systemd/system") || !programFile("systemd-run")) return false;
  try {
    return readFileSync("/proc/1/comm", "utf8").trim() === "systemd";
  } catch {
    return false;
  }
}

const chosen = new Map<string, string>();

/** The parent cgroup of all machines of an installation; constant for this process. */
export function machinesCgroup(node_id: string): string {
  const found = chosen.get(node_id) ?? choose(node_id);
  chosen.set(node_id, found);
  return found;
}

/** Machines started outside systemd's tree by an earlier version stay there, and new ones too, until none is left. */
function choose(node_id: string): string {
  const plain = plainPath(node_id);
  if (!systemdRuns() || populated(plain)) return plain;
  removeCgroup(plain);
  return join(scopePath(node_id), "machines");
}

function populated(cgroup: string): boolean {
  return Object.values(cgroupDirs(cgroup)).some(
    (dir) => existsSync(dir) && readdirSync(dir).some((name) => processesIn(join(cgroup, name)).length > 0),
  );
}

/** The directory in systemd's hierarchy. */
function unitDir(cgroup: string): string {
  const dirs = cgroupDirs(cgroup);
  return dirs["unified"] ?? dirs["name=systemd"] ?? "";
}

/** Wraps a command so that it starts outside our own unit. */
export function outsideUnit(node_id: string, argv: readonly string[]): string[] {
  const scope = unitDir(scopePath(node_id));
  return isDelegated(node_id) && existsSync(join(scope, "helpers"))
    ? outliving(argv, [join(scope, "helpers")])
    : outliving(argv);
}

/** Whether there is a cgroup to create machines in; false when systemd has removed the empty scope. */
export const isDelegated = (node_id: string): boolean =>
  machinesCgroup(node_id) === plainPath(node_id) || existsSync(unitDir(scopePath(node_id)));

/** Creates the scope if it is missing. Called before every start; costs one check. */
export async function delegate(node_id: string, clock: Clock): Promise<void> {
  if (machinesCgroup(node_id) === plainPath(node_id)) return;
  const scope = unitDir(scopePath(node_id));
  keepHelpersIn([join(scope, "helpers")]);
  if (existsSync(join(scope, "machines"))) return;
  if (!existsSync(scope)) await withSlice(clock, async () => await makeScope(node_id, scope, clock));
  for (const name of ["helpers", "machines"]) mkdirSync(join(scope, name), { recursive: true });
  // cgroup v2 gives no controllers to children of a cgroup that has processes itself.
  for (const pid of processesIn(scopePath(node_id))) writeFileSync(join(scope, "helpers/cgroup.procs"), String(pid));
}

const START_MS = 30_000;

async function makeScope(node_id: string, scope: string, clock: Clock): Promise<void> {
  const options = ["--scope", "--quiet", "--collect", `--slice=${SLICE}`, `--unit=${scopeName(node_id)}`];
  const properties = ["Delegate=yes", "TimeoutStopSec=30", "Description=Machines of Hangar", ...ordering()];
  const holder = ["sleep", "infinity"];
  const args = [...options, ...properties.map((property) => `--property=${property}`), "--", ...holder];
  const child = spawn("systemd-run", args, { detached: true, stdio: ["ignore", "ignore", "pipe"], cwd: "/" });
  let problem = "";
  let ended = false;
  child.stderr.setEncoding("utf8").on("data", (text: string) => (problem += text));
  child.on("error", ({ message }) => (problem = message));
  child.on("close", () => (ended = true));
  try {
    const end = clock.monotonic() + START_MS;
    // systemd-run executes the holder once it is in the scope.
    while (!processesIn(scopePath(node_id)).includes(child.pid ?? -1) || isStarting(child.pid)) {
      if (ended || clock.monotonic() > end)
        throw new Error(`systemd made no ${scopeName(node_id)}: ${problem.trim() || "it did not answer"}`);
      await clock.sleep(5);
    }
  } catch (thrown) {
    child.kill("SIGKILL");
    throw thrown;
  } finally {
    child.stderr.destroy();
    child.unref();
  }
  if (!existsSync(scope)) throw new Error(`${scopeName(node_id)} is not where it should be: ${scope}`);
}

/** Still systemd-run itself, waiting for systemd. */
function isStarting(pid: number | undefined): boolean {
  try {
    return readFileSync(`/proc/${pid}/comm`, "utf8").trim() === "systemd-run";
  } catch {
    return false;
  }
}

/** At shutdown our own unit must stop first: otherwise we would restart machines that systemd stops. */
function ordering(): string[] {
  const unit = ownUnit();
  return unit === undefined ? [] : [`Before=${unit}`];
}

/** The service that this process is part of. */
function ownUnit(): string | undefined {
  const [, unit] = /^0::.*\/([^/]+\.service)$/m.exec(readFileSync("/proc/self/cgroup", "utf8")) ?? [];
  return unit?.startsWith("user@") ? undefined : unit;
}

/** Removes the installation's scope when nothing runs in it, and the slice after the last scope of the host. */
export async function endDelegation(node_id: string, clock: Clock): Promise<void> {
  removeCgroup(machinesCgroup(node_id));
  if (machinesCgroup(node_id) === plainPath(node_id)) return;
  const stopping = await isStopping(ownUnit());
  // systemd ends the scope after our own service, by the order above: a service that is being stopped would wait for itself.
  if (existsSync(unitDir(scopePath(node_id))))
    await program("systemctl", ["stop", ...(stopping ? ["--no-block"] : []), scopeName(node_id)]);
  if (stopping) return;
  await withSlice(clock, async () => {
    const slice = unitDir(`/${SLICE}`);
    const isEmpty = existsSync(slice) && !readdirSync(slice).some((name) => name.endsWith(".scope"));
    if (isEmpty) await program("systemctl", ["stop", SLICE]);
  });
}

/** Not every service that we are part of is our own: a shell over SSH may be in that of the SSH server. */
async function isStopping(unit: string | undefined): Promise<boolean> {
  if (unit === undefined) return false;
  return (await program("systemctl", ["show", unit, "--property=ActiveState", "--value"])).trim() === "deactivating";
}

/**
 * One at a time on a host: systemd keeps an empty slice, and stopping it ends a scope that another process makes just
 * now.
 */
async function withSlice(clock: Clock, work: () => Promise<void>): Promise<void> {
  mkdirSync(CLAIMS_DIR, { recursive: true, mode: 0o755 });
  const file = join(CLAIMS_DIR, "slice.lock");
  const end = clock.monotonic() + START_MS;
  for (;;) {
    const lock = holdLock(file);
    if (lock === undefined) {
      if (clock.monotonic() > end) throw new Error(`another process has ${file} for more than ${START_MS / 1000} s`);
      await clock.sleep(5);
      continue;
    }
    try {
      return await work();
    } finally {
      lock.release();
    }
  }
}
