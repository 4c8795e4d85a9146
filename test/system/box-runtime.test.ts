/**
 * The runtime's own system tests in a whole system: cgroup v2 below systemd, with the kernel, runc and CRIU of the
 * distribution, and with swap. What they need is copied there, so that nothing of this depends on a registry.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { after, before, suite, test } from "node:test";
import { Guest } from "../../scripts/prove/box/guest.ts";
import { BOX, noBox, say } from "./box-support.ts";
import { ROOT } from "./child.ts";

const HOME = "/root/hangar";
const NODE = `node_modules/node-linux-${process.arch}/bin/node`;
const PACKAGES = "runc criu lxcfs busybox-static nftables e2fsprogs xfsprogs iproute2 util-linux fuse3 python3-minimal";
/** What only `npm run check` needs. */
const LEFT_OUT = ["typescript", "@biomejs", "@esbuild", "oxlint*", "@oxlint*", "@typescript"].map(
  (name) => `--exclude=node_modules/${name}`,
);
const SWAP_MIB = 1024;
/** A test in emulation takes ten times as long. */
const LIMIT_MS = 40 * 60_000;

/** What is shown, the file that shows it, and which of its tests. */
const ROWS: readonly { what: string; file: string; tests?: string }[] = [
  { what: "limits are in the machine's cgroup, in a delegated scope", file: "cgroup-tree" },
  { what: "disk I/O is held to io.max", file: "machine-io" },
  { what: "a machine that runs out of memory says so", file: "runc-machines", tests: "memory" },
  { what: "processes are frozen and thawed", file: "cgroup-freeze" },
  { what: "suspend by snapshot, with CRIU", file: "runc-suspend", tests: "suspend by snapshot" },
  { what: "suspend by freeze, with memory given back to swap", file: "runc-suspend", tests: "suspend by freeze" },
];

suite(`${BOX.title}: the runtime`, { skip: noBox }, () => {
  let guest: Guest;

  before(async () => {
    guest = await Guest.boot(BOX, say);
    const archive = spawnSync("git", ["archive", "HEAD"], { cwd: ROOT, maxBuffer: 2 ** 30 }).stdout;
    await guest.must(`mkdir ${HOME}; tar -x -C ${HOME}`, { input: archive });
    const modules = spawnSync("tar", ["-cz", ...LEFT_OUT, "node_modules"], { cwd: ROOT, maxBuffer: 2 ** 30 }).stdout;
    await guest.must(`tar -xz -C ${HOME}`, { input: modules });
    await guest.must("apt-get -qq update");
    await guest.must(`DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends ${PACKAGES}`);
    await guest.must(`fallocate -l ${SWAP_MIB}M /swap; chmod 600 /swap; mkswap /swap; swapon /swap`);
  });
  after(async () => await guest?.close());

  for (const { what, file, tests } of ROWS)
    test(`${BOX.name}: ${what} (B9)`, async (t) => {
      const only = tests === undefined ? "" : `--test-name-pattern='${tests}'`;
      const script = `cd ${HOME}\n${NODE} --test --test-reporter=tap ${only} test/system/${file}.test.ts`;
      const { status, stdout, stderr } = await guest.run(script, { limit_ms: LIMIT_MS });
      const count = (name: string): number => Number(new RegExp(`^# ${name} (\\d+)$`, "m").exec(stdout)?.[1] ?? 0);
      assert.equal(status, 0, `${stdout.slice(-6000)}\n${stderr.slice(-2000)}`);
      assert.ok(count("pass") > 0, stdout.slice(-2000));
      t.diagnostic(`${count("pass")} tests`);
      for (const [, said] of stdout.matchAll(
        /^ *# (?!Subtest|tests|suites|pass|fail|cancelled|skipped|todo|duration)(.*)$/gm,
      ))
        t.diagnostic(said ?? "");
    });
});
