/** What tests in a whole system of their own share: the box of this run, and questions to it. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { setTimeout as sleep } from "node:timers/promises";
import { boxesMissing, boxNamed } from "../../scripts/prove/box/boxes.ts";
import type { Guest } from "../../scripts/prove/box/guest.ts";
import { runs } from "../support.ts";
import { ROOT } from "./child.ts";

export const BOX = boxNamed(process.env["HANGAR_BOX"]);

/** Why this run has no box, or false. */
export const noBox: string | false =
  runs(0, 1) === 0 ? "boots a whole system: npm run prove -- --box debian13" : (boxesMissing() ?? false);

export const say = (text: string): void => void process.stderr.write(`# ${text}\n`);

/** Packages of this checkout; answers what was made. */
export function pack(to: string, ...options: string[]): string[] {
  const args = ["scripts/pack.ts", "--to", to, ...options];
  const { status, stdout, stderr } = spawnSync(process.execPath, args, { cwd: ROOT, encoding: "utf8" });
  assert.equal(status, 0, stderr);
  return stdout.trim().split("\n");
}

const LIMIT_MS = 10 * 60_000;
const LOOK_MS = 2000;

/** Looks until it is so; says in the end what was seen last. */
export async function eventually(what: string, look: () => Promise<string | true>, limit_ms = LIMIT_MS): Promise<void> {
  const end = performance.now() + limit_ms;
  for (;;) {
    const seen = await look();
    if (seen === true) return;
    assert.ok(performance.now() < end, `${what} did not come to pass; last seen: ${seen}`);
    await sleep(LOOK_MS);
  }
}

/**
 * Every process of a machine and its monitor, with the moment it began: the same list means that nothing was interrupted.
 * The brackets keep the shell that looks, which has the pattern in its own command line, out of the list.
 */
export async function processesOf(guest: Guest, machine: string): Promise<string> {
  assert.match(machine, /^\w+$/);
  const list = await guest.must(
    `for file in $(find /sys/fs/cgroup -path '*${machine}*' -name cgroup.procs); do cat $file; done |
     sort -nu - <(pgrep -f 'native/[^ ]*/[m]onitor .*${machine}' || true) |
     while read -r pid; do echo "$pid:$(cut -d ' ' -f 22 /proc/$pid/stat)"; done`,
  );
  assert.notEqual(list.trim(), "", `no process of machine ${machine} runs`);
  return list;
}

/**
 * Whatever of Hangar the system holds outside of its package: processes, mounts, cgroups, devices, rules, files. The lxcfs
 * at /var/lib/lxcfs is the service of Debian's package.
 */
export const LEFTOVERS = `
pgrep -af 'hangar|native/[^ ]*/[m]onitor|lxcfs|gocryptfs' | grep -v -e pgrep -e sshd -e 'bash -c' -e ' /var/lib/lxcfs$' || true
grep -E 'hangar' /proc/self/mountinfo || true
find /sys/fs/cgroup -maxdepth 2 -name '*hangar*' || true
ip -o link | grep -E ': h[0-9a-f]{5}[bvt][0-9a-f]{8}' || true
nft list tables 2> /dev/null | grep hangar || true
losetup -a | grep hangar || true
ls -d /var/lib/hangar /var/cache/hangar /etc/hangar /run/hangar /etc/systemd/system/hangar.service 2> /dev/null || true
`;

/** What installations share, which goes with the data of the last one. */
export const CLAIMS = "ls -d /var/lib/hangar-claims 2> /dev/null || true\n";

/**
 * Runs a machine of the built-in image and waits until it is started; answers its id. A box without acceleration may take
 * longer to make the image than the request may last, so the list of machines decides.
 */
export async function runMachine(guest: Guest, hangar: string, app: string, options: string): Promise<string> {
  const name = /--name (\S+)/.exec(options)?.[1];
  await guest.run(`${hangar} machines run hangar/hello --app ${app} ${options}`);
  let id = "";
  await eventually(`machine ${name} started`, async () => {
    const listed = JSON.parse(await guest.must(`${hangar} machines list --app ${app} --json`)) as {
      id: string;
      name: string;
      state: string;
    }[];
    const found = listed.find((machine) => machine.name === name);
    id = found?.id ?? "";
    return found?.state === "started" || JSON.stringify(listed);
  });
  return id;
}
