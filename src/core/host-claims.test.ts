import assert from "node:assert/strict";
import { fork } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir } from "../../test/support.ts";
import { claimsOf, dataDirOf, forgetRemoved, HostClaims } from "./host-claims.ts";

function aDataDir(name = "data"): string {
  const dir = join(tempDir(), name);
  mkdirSync(join(dir, "machines"), { recursive: true });
  return dir;
}

const RACER = `
const { HostClaims } = await import(process.argv[2]);
const claims = new HostClaims("uids", process.argv[3], process.argv[4]);
const mine = [];
for (let block = 0; block < 200; block++)
  if (claims.take(String(block), "machines/m") === undefined) mine.push(String(block));
process.send(mine);
`;

suite("claims of installations on one host", () => {
  test("removing an installation releases its claims, and removing the last one the folder of claims", () => {
    const [claims_dir, one, other] = [tempDir(), aDataDir(), aDataDir()];
    for (const [dir, block] of [
      [one, "65536"],
      [other, "131072"],
    ] as const)
      assert.equal(new HostClaims("uids", dir, claims_dir).take(block, "machines/m"), undefined);
    rmSync(one, { recursive: true });
    forgetRemoved(claims_dir);
    assert.deepEqual(claimsOf("uids", claims_dir), [{ name: "131072", of: join(other, "machines/m") }]);
    rmSync(other, { recursive: true });
    forgetRemoved(claims_dir);
    assert.ok(!existsSync(claims_dir));
    forgetRemoved(claims_dir);
  });

  test("a claim of one installation is refused to another, with the name of its holder", () => {
    const [claims_dir, one, other] = [tempDir(), aDataDir(), aDataDir()];
    const first = new HostClaims("uids", one, claims_dir);
    const second = new HostClaims("uids", other, claims_dir);
    assert.equal(first.take("65536", "machines/m1"), undefined);
    assert.equal(first.take("65536", "machines/m1"), undefined, "it still has it");
    const holder = second.take("65536", "machines/m1");
    assert.equal(holder, join(one, "machines/m1"));
    assert.equal(dataDirOf(holder ?? ""), one);
    assert.equal(first.take("65536", "machines/m2"), join(one, "machines/m1"), "nor does another machine of the same");
    second.release("65536", "machines/m1");
    assert.equal(second.take("65536", "machines/m1"), holder, "a claim of another installation is never given away");
    first.release("65536", "machines/m1");
    assert.equal(second.take("65536", "machines/m1"), undefined);
  });

  test("claims of a removed or moved data dir are free, those of a stopped installation are not", () => {
    const [claims_dir, one, other] = [tempDir(), aDataDir("machines"), aDataDir()];
    const first = new HostClaims("uids", one, claims_dir);
    const second = new HostClaims("uids", other, claims_dir);
    for (const name of ["1", "2"]) assert.equal(first.take(name, "machines/m"), undefined);
    second.tidy(() => true);
    assert.equal(claimsOf("uids", claims_dir).length, 2);
    const moved = `${one}-moved`;
    renameSync(one, moved);
    const again = new HostClaims("uids", moved, claims_dir);
    assert.equal(again.take("1", "machines/m"), undefined, "who was moved has it by its new name");
    assert.equal(second.take("1", "machines/m"), join(moved, "machines/m"));
    rmSync(moved, { recursive: true });
    assert.equal(second.take("1", "machines/m"), undefined);
    assert.deepEqual(claimsOf("uids", claims_dir), [{ name: "1", of: join(other, "machines/m") }]);
  });

  test("claims left by a crash are released only by their owner", () => {
    const [claims_dir, one, other] = [tempDir(), aDataDir(), aDataDir()];
    const first = new HostClaims("uids", one, claims_dir);
    first.take("1", "machines/m1");
    first.take("2", "machines/m2");
    new HostClaims("uids", other, claims_dir).tidy(() => false);
    assert.equal(claimsOf("uids", claims_dir).length, 2);
    first.tidy((name) => name === "2");
    assert.deepEqual(claimsOf("uids", claims_dir), [{ name: "2", of: join(one, "machines/m2") }]);
  });

  test("processes that race for the same claims, some of them abandoned, never share one", async () => {
    const [claims_dir, removed, program] = [tempDir(), aDataDir(), join(tempDir(), "racer.mjs")];
    writeFileSync(program, RACER);
    const left = new HostClaims("uids", removed, claims_dir);
    for (let block = 0; block < 200; block += 2) left.take(String(block), "machines/m");
    rmSync(removed, { recursive: true });
    const racers = Array.from({ length: 4 }, async () => {
      const args = [join(import.meta.dirname, "host-claims.ts"), aDataDir(), claims_dir];
      // Without the variable that makes this process run tests.
      const child = fork(program, args, { execArgv: [], env: { ...process.env, NODE_TEST_CONTEXT: undefined } });
      const [mine] = (await once(child, "message")) as [string[]];
      return mine;
    });
    const taken = (await Promise.all(racers)).flat();
    assert.equal(new Set(taken).size, taken.length, "none twice");
    assert.equal(taken.length, 200, "and none is lost");
  });
});
