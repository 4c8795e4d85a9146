import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../../test/support.ts";
import { groupsOutside, outliving, removeOutlived } from "./outlive.ts";

const V2 = "29 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate";
const V1 = [
  "30 23 0:27 / /sys/fs/cgroup/systemd rw - cgroup cgroup rw,xattr,name=systemd",
  "31 23 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory",
].join("\n");
const HYBRID = `${V1}\n32 23 0:29 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw`;
const asRoot = process.getuid?.() === 0 ? false : "cgroups are root's";

suite("programs that outlive the platform's service", { skip: asRoot }, () => {
  const CASES: [name: string, own: { cgroup: string; mountinfo: string }, groups: string[]][] = [
    ["version 2", { cgroup: "0::/system.slice/hangar.service\n", mountinfo: V2 }, ["/sys/fs/cgroup/hangar-helpers"]],
    [
      "a cgroup below the service",
      { cgroup: "0::/system.slice/hangar.service/main\n", mountinfo: V2 },
      ["/sys/fs/cgroup/hangar-helpers"],
    ],
    [
      "version 1: the tree of systemd, not those of controllers",
      { cgroup: "4:memory:/system.slice/h.service\n1:name=systemd:/system.slice/h.service\n", mountinfo: V1 },
      ["/sys/fs/cgroup/systemd/hangar-helpers"],
    ],
    [
      "both versions",
      { cgroup: "1:name=systemd:/system.slice/h.service\n0::/system.slice/h.service\n", mountinfo: HYBRID },
      ["/sys/fs/cgroup/systemd/hangar-helpers", "/sys/fs/cgroup/unified/hangar-helpers"],
    ],
    ["a login session", { cgroup: "0::/user.slice/user-0.slice/session-1.scope\n", mountinfo: V2 }, []],
    ["no systemd", { cgroup: "0::/\n", mountinfo: V2 }, []],
    ["nothing to read", { cgroup: "", mountinfo: "" }, []],
  ];
  for (const [name, own, groups] of CASES) {
    test(`${name}: ${groups.length} cgroups outside`, () => assert.deepEqual(groupsOutside(own), groups));
  }

  test("outside of a service the command line is unchanged", () => {
    assert.deepEqual(outliving(["lxcfs", "--foreground"], []), ["lxcfs", "--foreground"]);
  });

  test("the process joins every cgroup before exec, and its arguments arrive unchanged", () => {
    const groups = [join(tempDir(), "a b"), join(tempDir(), "c")];
    const odd = ["$(id)", "a  b", "'", "*", ""];
    const [program = "", ...args] = outliving(["/usr/bin/printf", "%s|", ...odd], groups);
    const { stdout, status } = spawnSync(program, args, { encoding: "utf8" });
    assert.equal(status, 0);
    assert.equal(stdout, `${odd.join("|")}|`);
    for (const group of groups) assert.equal(readFileSync(join(group, "cgroup.procs"), "utf8"), "0\n");
  });

  test("an empty cgroup is removed, one in use stays", () => {
    const [empty, used] = [join(tempDir(), "empty"), join(tempDir(), "used")];
    outliving(["true"], [empty, join(used, "inner")]);
    removeOutlived([empty, used, join(used, "missing")]);
    assert.deepEqual([existsSync(empty), existsSync(used)], [false, true]);
  });
});
