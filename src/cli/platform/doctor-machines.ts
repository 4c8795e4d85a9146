/** Checks whether this host can run machines; tries features where that has no side effects. */
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync, realpathSync } from "node:fs";
import { claimsOf, dataDirOf } from "#core/host-claims.ts";
import type { Finding } from "./finding.ts";
import { startCommand } from "./running.ts";

const LINUX = process.platform === "linux";
const ENV = { ...process.env, PATH: `${process.env["PATH"]}:/usr/sbin:/sbin` };

/** Runs a system program, also when its folder is not in PATH. */
export const run = (name: string, args: string[], input?: string) =>
  spawnSync(name, args, { encoding: "utf8", env: ENV, ...(input === undefined ? {} : { input }) });

export function machineFindings(data_dir: string): Finding[] {
  if (!LINUX) return [];
  return [users(), userIds(data_dir), disks(), apart(), outside(), suspend(data_dir)];
}

/** User namespaces: root of a machine is an unprivileged user on this host. */
function users(): Finding {
  const what = "users";
  if (process.getuid?.() !== 0)
    return { what, verdict: "warn", found: "real machines need root", mend: `sudo ${startCommand()}` };
  const { status, stderr } = run("unshare", ["--user", "--mount", "--net", "true"]);
  if (status === 0) return { what, verdict: "ok", found: "user namespaces work: each machine has its own user ids" };
  const found = `user namespaces do not work: ${stderr?.trim() || "unshare is not installed"}`;
  return { what, verdict: "warn", found, mend: "sysctl -w user.max_user_namespaces=100000" };
}

/** Installations on one host never share blocks of user ids; reports how many each has. */
function userIds(data_dir: string): Finding {
  const own = existsSync(data_dir) ? realpathSync(data_dir) : data_dir;
  const counts = Map.groupBy(claimsOf("uids"), ({ of }) => dataDirOf(of));
  const others = [...counts].filter(([dir]) => dir !== own).map(([dir, claims]) => `${claims.length} for ${dir}`);
  const found = [`${counts.get(own)?.length ?? 0} blocks for machines of this platform`, ...others].join(", ");
  return { what: "user ids", verdict: "ok", found };
}

function disks(): Finding {
  const what = "root disks";
  if (existsSync("/dev/loop-control")) return { what, verdict: "ok", found: "each machine has its own root disk" };
  return { what, verdict: "warn", found: "there are no loop devices", mend: "modprobe loop" };
}

/** A ruleset for `nft --check`, which is never loaded. */
const RULES = `
table inet hangar_doctor {
  chain c {
    type filter hook forward priority filter;
    fib saddr . iif oif missing drop
  }
}
table bridge hangar_doctor {
  chain c {
    type filter hook prerouting priority -300;
  }
}
`;

function apart(): Finding {
  const what = "networks";
  const { status, error, stderr } = run("nft", ["--check", "-f", "-"], RULES);
  if (status === 0) return { what, verdict: "ok", found: "networks of organizations are isolated by nftables" };
  const found = `networks of organizations are not isolated: ${error ? "nft is not installed" : stderr.trim().split("\n")[0]}`;
  return { what, verdict: "warn", found, mend: "apt-get install nftables, as root" };
}

function outside(): Finding {
  const what = "outbound";
  const route = readFileSync("/proc/net/route", "utf8")
    .split("\n")
    .some((line) => line.split("\t")[1] === "00000000");
  const found = route
    ? "machines reach the internet over IPv4, through this host's address"
    : "this host has no default IPv4 route, so machines have no IPv4 internet access";
  return { what, verdict: "ok", found };
}

interface Tried {
  of: string;
  problem: string;
}

const FREEZE = "freezes machines: connections and memory are kept in RAM until the host restarts";

/** The kind of suspend. The platform probes it with a small machine, once per version of kernel, CRIU and runc. */
function suspend(data_dir: string): Finding {
  const what = "suspend";
  if (run("criu", ["--version"]).error)
    return { what, verdict: "warn", found: `${FREEZE} (CRIU is not installed)`, mend: "apt-get install criu" };
  const tried = triedIn(data_dir);
  if (!tried) return { what, verdict: "ok", found: "not tested yet; the first suspend tests which kind works" };
  const { of, problem } = tried;
  if (problem === "")
    return { what, verdict: "ok", found: `writes snapshots: memory and connections are kept on the disk (${of})` };
  const mend = "install CRIU 4.2 or later, or keep it; the next start of the platform tries again";
  return { what, verdict: "warn", found: `${FREEZE}; a snapshot failed: ${problem} (${of})`, mend };
}

function triedIn(data_dir: string): Tried | undefined {
  try {
    return JSON.parse(readFileSync(`${data_dir}/suspend.json`, "utf8")) as Tried;
  } catch {
    return undefined;
  }
}
