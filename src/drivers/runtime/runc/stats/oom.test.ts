import assert from "node:assert/strict";
import { test } from "node:test";
import { lastKill } from "./oom.ts";

const CGROUP = "/hangar/n1/m1";
const record = (memcg: string, name: string, at = 100, constraint = "CONSTRAINT_MEMCG"): string =>
  `6,1,${at},-;oom-kill:constraint=${constraint},nodemask=(null),cpuset=m1,mems_allowed=0,oom_memcg=${memcg},task_memcg=${memcg},task=${name},pid=42,uid=100000\n SUBSYSTEM=x\n`;

test("the last OOM kill of a cgroup is found by its exact path", () => {
  const records = [
    record(CGROUP, "first"),
    record(CGROUP, "python3", 200),
    record("/hangar/n1/m10", "other"),
    record("/hangar/n1/m2", "other"),
  ];
  assert.deepEqual(lastKill(records, CGROUP), { process: "python3", memory: "machine", at_us: 200 });
  assert.equal(lastKill(records, "/hangar/n1/m3"), undefined);
});

test("a process name with field separators is parsed, and cannot name another cgroup", () => {
  assert.equal(lastKill([record(CGROUP, "a,pid=7,uid=0")], CGROUP)?.process, "a,pid=7,uid=0");
  const liar = record(CGROUP, "x,task_memcg=/hangar/n1/m2,task=y");
  assert.equal(lastKill([liar], "/hangar/n1/m2"), undefined, "nor can it name another cgroup");
});

test("an enclosing cgroup path is ignored, and host-wide OOM is distinguished", () => {
  const outside = record(`/docker/abc${CGROUP}`, "node", 5, "CONSTRAINT_NONE");
  assert.deepEqual(lastKill([outside], CGROUP), { process: "node", memory: "host", at_us: 5 });
});
