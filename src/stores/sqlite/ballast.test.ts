import assert from "node:assert/strict";
import { existsSync, statSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { tempDir } from "../../../test/support.ts";
import { Ballast } from "./ballast.ts";

suite("ballast", () => {
  test("the ballast takes its space, frees it while an operation needs it, and takes it back", () => {
    const file = join(tempDir(), "ballast");
    const ballast = new Ballast(file);
    ballast.fill();
    const { size } = statSync(file);
    assert.ok(size > 0 && size <= LIMITS.ballast_bytes);
    ballast.fill();
    assert.ok(statSync(file).size <= LIMITS.ballast_bytes, "filling twice does not take twice");
    const during = ballast.spend(() => statSync(file).size);
    assert.equal(during, 0);
    assert.throws(() => ballast.spend(() => assert.fail("the work went wrong")), /went wrong/);
    assert.ok(statSync(file).size >= size, "also when the work fails");
  });

  test("the operation runs without ballast where the file cannot be written", () => {
    const file = join(tempDir(), "nowhere/ballast");
    const ballast = new Ballast(file);
    ballast.fill();
    assert.equal(
      ballast.spend(() => "done"),
      "done",
    );
    assert.ok(!existsSync(file));
  });
});
