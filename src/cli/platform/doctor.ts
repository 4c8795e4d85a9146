import { accessSync, constants, existsSync, readFileSync, statfsSync } from "node:fs";
import { release } from "node:os";
import { dirname } from "node:path";
import { ClientError } from "#client/client.ts";
import { messageOf } from "#core/assert.ts";
import type { KernelInventory } from "#core/kernel-objects.ts";
import { VERSION } from "#core/version.ts";
import { count } from "#core/words.ts";
import { collect } from "../lists.ts";
import { styled } from "../terminal-text.ts";
import type { Context, Verb } from "../verb.ts";
import { hostFindings, isHost } from "./doctor-host.ts";
import { machineFindings, run } from "./doctor-machines.ts";
import type { Finding } from "./finding.ts";
import { kernelFindings } from "./kernel.ts";
import { runningPlatform, startCommand } from "./running.ts";

const GIB = 1024 ** 3;

export const doctor: Verb = {
  words: "doctor",
  summary: "Check this box for everything the platform needs, and say how to fix what is missing",
  examples: ["hangar doctor"],
  async run(context) {
    const findings = [
      ...versions(),
      kernel(),
      cgroups(),
      program("runc", ["--version"], "machines run as real containers", "apt-get install runc"),
      program("criu", ["--version"], "machines suspend with their memory", "apt-get install criu"),
      program("lxcfs", ["--version"], "machines see their own memory and CPUs in /proc", "apt-get install lxcfs"),
      program("nft", ["--version"], "networks of organizations are isolated", "apt-get install nftables"),
      program("mkfs.ext4", ["-V"], "volumes can be created", "apt-get install e2fsprogs"),
      program("mkfs.xfs", ["-V"], "copies of volumes share their blocks", "apt-get install xfsprogs"),
      program("gocryptfs", ["-version"], "volumes can be encrypted on any kernel", "apt-get install gocryptfs"),
      ...machineFindings(context.data_dir),
      ...(context.is_of_data_dir ? await dataFindings(context) : []),
      ...(context.is_of_data_dir && isHost(context.data_dir)
        ? await hostFindings(context.data_dir)
        : await platform(context)),
    ];
    const failed = findings.some((finding) => finding.verdict === "fail");
    return { data: findings, text: findings.map(line).join("\n"), exit: failed ? 1 : 0 };
  },
};

const MARKS = { ok: styled("green", "✔"), warn: styled("yellow", "!"), fail: styled("red", "✘") };

function line({ what, verdict, found, mend }: Finding): string {
  return `${MARKS[verdict]} ${what.padEnd(12)} ${found}${mend ? `\n  to fix it:   ${mend}` : ""}`;
}

function versions(): Finding[] {
  const node = Number(process.versions.node.split(".")[0]) >= 24;
  return [
    { what: "hangar", verdict: "ok", found: VERSION },
    { what: "node", verdict: node ? "ok" : "fail", found: process.version, ...(node ? {} : { mend: "npm ci" }) },
  ];
}

/** User namespaces for machines need idmapped mounts: Linux 5.12, and 5.19 for overlayfs. */
function kernel(): Finding {
  if (process.platform !== "linux")
    return { what: "kernel", verdict: "warn", found: `${process.platform}: only the sim driver runs here` };
  const [major = 0, minor = 0] = release().split(".").map(Number);
  const fine = major > 5 || (major === 5 && minor >= 19);
  return {
    what: "kernel",
    verdict: fine ? "ok" : "warn",
    found: `${release()}${fine ? "" : ", older than 5.19: no user namespaces for machines"}`,
  };
}

function cgroups(): Finding {
  const where = existsSync("/run/systemd/system") ? "; machines are in their own scopes below hangar.slice" : "";
  if (existsSync("/sys/fs/cgroup/cgroup.controllers")) return { what: "cgroups", verdict: "ok", found: `v2${where}` };
  if (existsSync("/sys/fs/cgroup/memory")) return { what: "cgroups", verdict: "ok", found: `v1${where}` };
  return {
    what: "cgroups",
    verdict: "warn",
    found: "not mounted: machines cannot have limits",
    mend: "mount -t cgroup2 none /sys/fs/cgroup",
  };
}

function program(name: string, args: string[], gives: string, mend: string): Finding {
  const { error, stdout, stderr } = run(name, args);
  if (error) return { what: name, verdict: "warn", found: `not installed; with it ${gives}`, mend };
  const [first = ""] = `${stdout}${stderr}`.trim().split("\n");
  return { what: name, verdict: "ok", found: first };
}

async function dataFindings(context: Context): Promise<Finding[]> {
  const { data_dir } = context;
  return [disk(data_dir), dataDir(data_dir), ...(await database(context)), ...(await kernelObjects(context))];
}

function nearestExisting(path: string): string {
  return existsSync(path) ? path : nearestExisting(dirname(path));
}

function disk(data_dir: string): Finding {
  const { bavail, bsize } = statfsSync(nearestExisting(data_dir));
  const free = (bavail * bsize) / GIB;
  const found = `${free.toFixed(1)} GiB free for ${data_dir}`;
  if (free >= 5) return { what: "disk", verdict: "ok", found };
  return {
    what: "disk",
    verdict: free < 0.5 ? "fail" : "warn",
    found,
    mend: "free some space, or set HANGAR_DATA_DIR to a larger disk",
  };
}

function dataDir(data_dir: string): Finding {
  if (!existsSync(data_dir))
    return { what: "data dir", verdict: "ok", found: `${data_dir} is created at the first start` };
  try {
    accessSync(data_dir, constants.R_OK | constants.W_OK);
    return { what: "data dir", verdict: "ok", found: data_dir };
  } catch (thrown) {
    return { what: "data dir", verdict: "fail", found: messageOf(thrown), mend: `chown -R "$USER" ${data_dir}` };
  }
}

/** Checked by a separate program, since only the store knows the format of the database. */
async function database({ runProgram, data_dir }: Context): Promise<Finding[]> {
  if (!existsSync(`${data_dir}/hangar.db`) && !existsSync(`${data_dir}/hangar.db-commits`)) return [];
  const { exit, text } = await runProgram("main.ts", ["check", "--data-dir", data_dir], "quiet");
  if (exit !== 0) return [{ what: "database", verdict: "warn", found: "could not be checked; the error is above" }];
  const { problem } = JSON.parse(text) as { problem?: string };
  if (problem === undefined)
    return [{ what: "database", verdict: "ok", found: "intact: no acknowledged write is missing" }];
  return [{ what: "database", verdict: "fail", found: problem, mend: "hangar restore FILE --data-dir AN_EMPTY_ONE" }];
}

/** Listed by a separate program, which knows the names that this platform gives. */
async function kernelObjects({ runProgram, data_dir }: Context): Promise<Finding[]> {
  if (process.platform !== "linux" || !existsSync(`${data_dir}/node_id`)) return [];
  const { exit, text } = await runProgram("main.ts", ["inventory", "--data-dir", data_dir], "quiet");
  if (exit !== 0)
    return [{ what: "kernel objects", verdict: "warn", found: "could not be listed; the error is above" }];
  return kernelFindings(JSON.parse(text) as KernelInventory, runningPlatform(data_dir) !== undefined);
}

async function platform(context: Context): Promise<Finding[]> {
  const { client, data_dir } = context;
  try {
    const { version, checks } = await client.call("GET /readyz", {});
    const where = context.is_of_data_dir ? "" : `${elsewhere(context)}: `;
    const found = `${where}ready, version ${version} (${Object.keys(checks).join(", ")})`;
    return [{ what: "platform", verdict: "ok", found }, ...(await hosts(context)), ...(await diskIo(context))];
  } catch (thrown) {
    if (!context.is_of_data_dir)
      return [{ what: "platform", verdict: "fail", found: `${elsewhere(context)}: ${messageOf(thrown)}` }];
    if (thrown instanceof ClientError && thrown.body.status === "not_ready")
      return [{ what: "platform", verdict: "fail", found: thrown.message, mend: `tail ${data_dir}/hangar.log` }];
    const pid = existsSync(`${data_dir}/pid`) ? ` (last pid ${readFileSync(`${data_dir}/pid`, "utf8").trim()})` : "";
    return [{ what: "platform", verdict: "warn", found: `${messageOf(thrown)}${pid}`, mend: startCommand() }];
  }
}

const elsewhere = ({ client, chosen }: Context): string => `${client.base_url} (${chosen})`;

/** Hosts of a multi-host platform that send no heartbeats. */
async function hosts({ client }: Context): Promise<Finding[]> {
  try {
    const all = await collect(client.pages("GET /v1/platform/hosts", {}));
    const silent = all.filter(({ state }) => state === "unknown" || state === "failed");
    if (all.length < 2 && silent.length === 0) return [];
    if (silent.length === 0)
      return [{ what: "hosts", verdict: "ok", found: `${count(all.length, "host")}, all send heartbeats` }];
    const named = silent.slice(0, HOSTS_NAMED).map(({ id, state }) => `${id} is ${state}`);
    const others = silent.length > named.length ? `, and ${silent.length - named.length} more` : "";
    const found = `${silent.length} of ${count(all.length, "host")} send no heartbeats: ${named.join(", ")}${others}`;
    return [{ what: "hosts", verdict: "fail", found, mend: `hangar hosts show ${silent[0]?.id}` }];
  } catch {
    return [];
  }
}

const HOSTS_NAMED = 5;

async function diskIo({ client }: Context): Promise<Finding[]> {
  try {
    const { machine_io } = await client.call("GET /v1/platform/facts", {});
    const found = `${machine_io}, for each machine and disk (HANGAR_MACHINE_IO_…)`;
    return [{ what: "disk I/O", verdict: "ok", found }];
  } catch {
    // This token may not read it; the other findings are still shown.
    return [];
  }
}
