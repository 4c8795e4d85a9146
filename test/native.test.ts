import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ARCHES, buildNative, NATIVE, PROGRAM_NAMES } from "../scripts/build-native.ts";
import { tempDir } from "./support.ts";

/** Other compilers write other bytes. */
const COMPILER = "12.2.0";

for (const arch of ARCHES) {
  const compiler = `${arch === "x64" ? "x86_64" : "aarch64"}-linux-gnu-gcc`;
  const version = spawnSync(compiler, ["-dumpfullversion"], { encoding: "utf8" }).stdout?.trim();
  const skip = version === COMPILER ? undefined : `there is no ${compiler} ${COMPILER}`;
  test(`the native programs for ${arch} are what their source says`, { skip }, () => {
    const dir = tempDir();
    for (const program of PROGRAM_NAMES) {
      assert.equal(buildNative(program, arch, join(dir, program)), undefined);
      assert.ok(readFileSync(join(dir, program)).equals(readFileSync(join(NATIVE, arch, program))), program);
    }
  });
}
