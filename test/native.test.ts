import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ARCHES, buildNative, NATIVE, PROGRAM_NAMES } from "../scripts/build-native.ts";
import { buildPoints, POINTS } from "../scripts/build-wasm.ts";
import { tempDir } from "./support.ts";

/** Other compilers write other bytes. */
const COMPILER = "12.2.0";

for (const arch of ARCHES) {
  const compiler = `${arch === "x64" ? "x86_64" : "aarch64"}-linux-gnu-gcc`;
  const version = spawnSync(compiler, ["-dumpfullversion"], { encoding: "utf8" }).stdout?.trim();
  const skip = version === COMPILER ? undefined : `there is no ${compiler} ${COMPILER}`;
  test(`the native programs for ${arch} match their source`, { skip }, () => {
    const dir = tempDir();
    for (const program of PROGRAM_NAMES) {
      assert.equal(buildNative(program, arch, join(dir, program)), undefined);
      assert.ok(readFileSync(join(dir, program)).equals(readFileSync(join(NATIVE, arch, program))), program);
    }
  });
}

const clang = /version ([\d.]+)/.exec(spawnSync("clang", ["--version"], { encoding: "utf8" }).stdout ?? "")?.[1];
const CLANG = "14.0.6";
const noClang = clang === CLANG ? undefined : `there is no clang ${CLANG} with lld`;
test("points.wasm matches its source", { skip: noClang }, () => {
  const built = join(tempDir(), "points.wasm");
  assert.equal(buildPoints(built), undefined);
  assert.ok(readFileSync(built).equals(readFileSync(join(POINTS, "points.wasm"))));
});
