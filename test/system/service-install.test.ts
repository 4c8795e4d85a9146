/**
 * What `hangar service install` writes, by the command as people run it: one bundled file. In mounts of its own, with a
 * systemctl that only notes its words; scripts/prove/box has the real one.
 */
import assert from "node:assert/strict";
import { chmodSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { shell, tempDir } from "../support.ts";
import { ROOT } from "./child.ts";
import { mountsMissing } from "./own-mounts.ts";

test("the installed unit names an existing Node and program, and the service is enabled and started", {
  skip: mountsMissing(),
}, async () => {
  const dir = tempDir("hangar-service");
  const [bin, words, unit] = ["bin", "words", "unit"].map((name) => join(dir, name)) as [string, string, string];
  mkdirSync(bin);
  writeFileSync(join(bin, "systemctl"), `#!/bin/sh\necho "$@" >> "${words}"\n`);
  chmodSync(join(bin, "systemctl"), 0o755);
  const script = `set -e
mount --make-rprivate /
mount -t tmpfs tmpfs /mnt; mkdir /mnt/upper /mnt/work
mount -t overlay overlay -o lowerdir=/etc,upperdir=/mnt/upper,workdir=/mnt/work /etc
mount -t tmpfs tmpfs /run; mkdir -p /run/systemd/system /etc/systemd/system
"${join(ROOT, "bin/hangar.mjs")}" service install --data-dir "${dir}/my data"
cp /etc/systemd/system/hangar.service "${unit}"
"${join(ROOT, "bin/hangar.mjs")}" doctor --data-dir "${dir}/my data" || true
echo ELSEWHERE
"${join(ROOT, "bin/hangar.mjs")}" doctor --data-dir "${dir}/my data" --url http://127.0.0.1:9 || true`;
  writeFileSync(join(dir, "script"), script);
  const env = { cwd: dir, HANGAR_SKIP_SYSTEM: "1", PATH: `${bin}:${process.env["PATH"]}` };
  // In a network of its own, too: a platform that somebody runs here is not the one that doctor looks for.
  const { status, stdout, stderr } = await shell(`unshare --mount --net sh "${join(dir, "script")}"`, env);
  assert.equal(status, 0, stderr);
  assert.match(stdout, /The platform runs as hangar\.service/);
  const [here = "", elsewhere = ""] = stdout.split("ELSEWHERE");
  assert.match(here, /platform +.*\n +to fix it: +systemctl start hangar/, "doctor says how this one is started");
  assert.match(elsewhere, /platform +http:\/\/127\.0\.0\.1:9 \(--url\): there is no answer/);
  assert.doesNotMatch(elsewhere, /my data|systemctl start/, "the data dir is not that of the platform elsewhere");
  const written = readFileSync(unit, "utf8");
  const [, node = "", program = ""] = /^ExecStart=(\S+) (\S+)$/m.exec(written) ?? assert.fail(written);
  assert.deepEqual([existsSync(node), program], [true, join(ROOT, "src/main.ts")]);
  assert.match(written, new RegExp(`HANGAR_DATA_DIR=${dir}/my data`));
  assert.deepEqual(readFileSync(words, "utf8").split("\n").slice(0, 3), [
    "daemon-reload",
    "enable --quiet hangar.service",
    "restart hangar.service",
  ]);
});
