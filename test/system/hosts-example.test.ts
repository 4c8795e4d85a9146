/** The example of three hosts on one box, as its page says to start it; nothing is left of it afterwards. */
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { postgresMissing } from "../postgres.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { runs, shell } from "../support.ts";
import { ROOT } from "./child.ts";

const heavy = runs(0, 1) === 0 ? "takes a minute: npm run prove -- system/hosts-example" : undefined;
const missing = heavy ?? realMachinesMissing() ?? postgresMissing();

/** Programs that name the folder. */
const processesWith = (words: string): string[] =>
  readdirSync("/proc").flatMap((pid) => {
    if (!/^\d+$/.test(pid)) return [];
    try {
      const line = readFileSync(`/proc/${pid}/cmdline`, "utf8").replaceAll("\0", " ");
      return line.includes(words) ? [line] : [];
    } catch {
      return [];
    }
  });

test("the example of three hosts restarts a machine elsewhere and cleans up", { skip: missing }, async () => {
  // The database has a user of its own, which must get there.
  const dir = join(tmpdir(), `hangar-three-${randomUUID()}`);
  const { status, stdout, stderr } = await shell("examples/three-hosts/run", { cwd: ROOT, THREE_HOSTS_DIR: dir });
  assert.equal(status, 0, `${stdout}\n${stderr}`);
  const [before, after, ...more] = [...stdout.matchAll(/^hello from ([0-9a-f]{4})$/gm)].map(([, host]) => host);
  assert.ok(before && after && more.length === 0, stdout);
  assert.notEqual(before, after, "it runs on another host");
  assert.equal(existsSync(dir), false);
  assert.deepEqual(processesWith(dir), []);
  const mounts = readFileSync("/proc/self/mountinfo", "utf8");
  assert.ok(!mounts.includes(dir), "nothing is mounted there");
});
