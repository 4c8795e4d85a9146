/** Checks a box that only runs machines of a platform: there is no API to ask, so its process answers for itself. */
import { existsSync, readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { messageOf } from "#core/assert.ts";
import { HOST_FILES, type HostPlace, type HostStatus } from "#core/host-status.ts";
import { run } from "./doctor-machines.ts";
import type { Finding } from "./finding.ts";
import { runningPlatform, startCommand } from "./running.ts";

/** Time for the process to answer; its own checks take at most 3 s. */
const ANSWER_MS = 10_000;

/** What is missing in a part, and what to do. */
const MEND: Record<string, string> = {
  database: "check that this box reaches PostgreSQL at the address in HANGAR_DATABASE_URL (or --database)",
  lease: "it is renewed by itself when the database is back; held by an operator: hangar hosts recover ID, elsewhere",
};

/** Whether the data dir is that of a process with `--role host`. */
export const isHost = (data_dir: string): boolean => existsSync(join(data_dir, HOST_FILES.place));

export async function hostFindings(data_dir: string): Promise<Finding[]> {
  const { id, region, zone } = JSON.parse(readFileSync(join(data_dir, HOST_FILES.place), "utf8")) as HostPlace;
  const place: Finding = {
    what: "host",
    verdict: "ok",
    found: `this box is host ${id}, region ${region}, zone ${zone}`,
  };
  try {
    const status = await ask(join(data_dir, HOST_FILES.socket));
    return [place, ...parts(status, data_dir), reached(status), api(status), network(status), volumes(status)];
  } catch (thrown) {
    const pid = runningPlatform(data_dir);
    if (pid === undefined) return [place, stopped(id)];
    const found = `its process runs (pid ${pid}) and does not answer yet: ${messageOf(thrown)}`;
    const mend = `it may wait for the database: tail ${data_dir}/hangar.log`;
    return [place, { what: "process", verdict: "fail", found, mend }];
  }
}

function stopped(id: string): Finding {
  const start = startCommand();
  return {
    what: "process",
    verdict: "fail",
    found: `host ${id} does not run: when its lease has ended, machines that may move start on other hosts`,
    mend: start.startsWith("systemctl") ? start : `${start} -- --role host, with the settings that it had before`,
  };
}

async function ask(path: string): Promise<HostStatus> {
  const socket = connect(path);
  const late = setTimeout(() => socket.destroy(new Error(`nothing came within ${ANSWER_MS / 1000} s`)), ANSWER_MS);
  try {
    return JSON.parse(await text(socket)) as HostStatus;
  } finally {
    clearTimeout(late);
  }
}

function parts({ pid, version, driver, ready, missing }: HostStatus, data_dir: string): Finding[] {
  const runs: Finding = { what: "process", verdict: "ok", found: `runs, version ${version}, pid ${pid}, ${driver}` };
  const works = ready.map((part): Finding => ({ what: part, verdict: "ok", found: "ready" }));
  const broken = missing.map(
    ({ part, reason }): Finding => ({
      what: part,
      verdict: "fail",
      found: reason,
      mend: MEND[part] ?? `tail ${data_dir}/hangar.log`,
    }),
  );
  return [runs, ...works, ...broken];
}

/** Logs, exec, terminals and images pass between control processes and hosts at this address. */
function reached({ address }: HostStatus): Finding {
  const what = "address";
  const mend = "start it with --host-listen and an address of this box that they reach, such as 10.0.0.11:4281";
  if (address === "")
    return { what, verdict: "warn", found: "control processes do not reach it for logs, exec and terminals", mend };
  if (/^(127\.|localhost|\[::1\])/.test(address))
    return { what, verdict: "warn", found: `${address}: only processes on this box reach it`, mend };
  return { what, verdict: "ok", found: `control processes reach it at ${address}` };
}

function api({ api: url }: HostStatus): Finding {
  if (url !== "") return { what: "API", verdict: "ok", found: `${url}, of a control process; this box has none` };
  return {
    what: "API",
    verdict: "warn",
    found: "no control process was started yet",
    mend: `${startCommand()} -- --role control, on another box`,
  };
}

function network({ network: kind }: HostStatus): Finding {
  const what = "overlay";
  if (kind === "off")
    return { what, verdict: "ok", found: "off: machines reach only those on this box (--host-network)" };
  if (kind === "wireguard" && run("wg", ["--version"]).error)
    return { what, verdict: "fail", found: "wireguard: wg is not installed", mend: "apt-get install wireguard-tools" };
  return { what, verdict: "ok", found: `${kind}: machines reach those on other hosts` };
}

function volumes({ has_objects }: HostStatus): Finding {
  const what = "objects";
  if (has_objects) return { what, verdict: "ok", found: "volumes and images are kept in HANGAR_OBJECTS_URL" };
  const found = "none: volumes cannot move to other hosts, and images come from the process that imported them";
  return { what, verdict: "warn", found, mend: "set HANGAR_OBJECTS_URL to the same place on all boxes" };
}
