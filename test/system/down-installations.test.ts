/** Several installations on one box, and one whose platform was killed: each is taken down by itself, and whole. */
import assert from "node:assert/strict";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { realMachinesMissing } from "../rootfs.ts";
import { traces, volumesMissing } from "../volumes.ts";
import { install, left } from "./installed.ts";
import { census, nodeIdOf } from "./leaks.ts";

suite("hangar down --all with several installations", { skip: realMachinesMissing() ?? volumesMissing() }, () => {
  test("down --all does not touch or name another installation's machines and volumes", async (t) => {
    const [one, other] = [await install(t), await install(t)];
    const before = census({ data_dir: other.data_dir, node_id: nodeIdOf(other.data_dir) });
    const down = await one.hangar("down --all");
    assert.equal(down.status, 0, down.stdout + down.stderr);
    assert.match(down.stdout, /Nothing of this installation is left/);
    assert.deepEqual(left(one.data_dir), {});
    const after = census({ data_dir: other.data_dir, node_id: nodeIdOf(other.data_dir) });
    assert.deepEqual(Object.keys(after), Object.keys(before));
    assert.deepEqual([after["mounts"]?.length, after["devices"]], [before["mounts"]?.length, before["devices"]]);
    assert.match((await other.hangar(`machines list --app web`)).stdout, new RegExp(`${other.machine} .*started`));
    assert.equal((await other.hangar("down --all")).status, 0);
    assert.deepEqual(left(other.data_dir), {});
  });

  test("down --all removes what a killed platform left, its pool and unlocked volume too", async (t) => {
    const { data_dir, hangar } = await install(t);
    process.kill(Number(readFileSync(join(data_dir, "pid"), "utf8")), "SIGKILL");
    const machines = readdirSync(join(data_dir, "machines"));
    for (const id of machines) {
      const pid = join("/run/hangar", nodeIdOf(data_dir), "m", id, "pid");
      if (existsSync(pid)) process.kill(Number(readFileSync(pid, "utf8")), "SIGKILL");
    }
    const down = await hangar("down --all");
    assert.match(down.stdout, /closed 1 volume/);
    assert.equal(down.status, 0, down.stdout);
    assert.deepEqual(left(data_dir), {});
    assert.deepEqual(traces(join(data_dir, "volumes")).loops, []);
  });
});
