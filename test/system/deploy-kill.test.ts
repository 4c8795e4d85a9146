/** A `hangar deploy` that is killed or interrupted: its release ends, and the next deploy cleans up and goes on. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { MovingClock } from "#core/moving-clock.ts";
import { testPlatform } from "../platform.ts";
import { tempDir, until } from "../support.ts";
import { Child, ROOT } from "./child.ts";

/** Longer than any test: the deploy waits for its machines until it is killed. */
const FOREVER = "--stable-for 3600s --wait-timeout 7200s";
const LEASE_MS = 60_000;
const LOOK_MS = 5000;

interface Machine {
  id: string;
  config: { env: Record<string, string>; metadata: Record<string, string> };
}

async function start(t: TestContext) {
  const clock = new MovingClock();
  const platform = await testPlatform(t, {}, { clock });
  const cwd = tempDir();
  const hangar = (line: string): Child => {
    const args = [join(ROOT, "bin/hangar.mjs"), ...line.split(" ")];
    const env = { PATH: process.env["PATH"], HOME: cwd, HANGAR_DATA_DIR: platform.data_dir };
    const child = new Child(process.execPath, args, { cwd, env });
    t.after(() => child.signal("SIGKILL"));
    return child;
  };
  const ok = async (line: string): Promise<Child> => {
    const child = hangar(line);
    assert.equal((await child.ended).code, 0, `${line}: ${child.lines.join("\n")}${child.complaints}`);
    return child;
  };
  const machines = async (): Promise<Machine[]> => (await platform.ask("GET /v1/apps/web/machines")).body;
  const release = async (version: number) => (await platform.ask(`GET /v1/apps/web/releases/${version}`)).body;
  const write = (mode: string): void =>
    writeFileSync(join(cwd, "hangar.toml"), `app = "web"\nimage = "web:1"\n[env]\nMODE = "${mode}"\n`);
  write("one");
  await ok("deploy --stable-for 0s");
  await ok("scale 2 --stable-for 0s");
  write("two");
  return { platform, clock, hangar, ok, machines, release, write, modes: async () => modesOf(await machines()) };
}

const modesOf = (machines: Machine[]): string[] =>
  machines.map(({ config }) => config.env["MODE"] ?? "").toSorted((a, b) => a.localeCompare(b));

suite("killed deploys", () => {
  test("the release of a killed deploy ends with a reason, and the next deploy waits for that alone", async (t) => {
    const { clock, hangar, ok, modes, release } = await start(t);
    const killed = hangar(`deploy ${FOREVER}`);
    await until("the first machine is updated", async () => (await modes()).includes("two"));
    killed.signal("SIGKILL");
    await killed.ended;
    assert.equal((await release(3)).status, "running");
    const next = hangar("deploy --stable-for 0s");
    await until("the next deploy waits", () => /Release 3 of web is being deployed by .*waiting/.test(next.complaints));
    await clock.advance(LEASE_MS - LOOK_MS);
    assert.deepEqual([(await release(3)).status, await modes()], ["running", ["one", "two"]]);
    await clock.advance(2 * LOOK_MS);
    await clock.advance(2 * LOOK_MS);
    assert.equal((await next.ended).code, 0, next.complaints);
    const { status, failure, duration_ms } = await release(3);
    assert.equal(status, "failed");
    assert.match(failure, /interrupted: nothing was heard from the deployer for 60 s/);
    assert.ok(duration_ms >= LEASE_MS - LOOK_MS);
    assert.deepEqual([(await release(4)).status, await modes()], ["complete", ["two", "two"]]);
    const list = await ok("releases --json");
    assert.match(list.lines.join(""), /"status": ?"failed"/);
  });

  test("machines that a killed blue-green deploy made go, and those it took out of traffic serve again", async (t) => {
    const { platform, clock, hangar, ok, machines, modes, release } = await start(t);
    const ids = async (): Promise<string[]> => (await machines()).map(({ id }) => id).toSorted();
    const before = await ids();
    const killed = hangar(`deploy --strategy bluegreen ${FOREVER}`);
    await until("the new machines are there", async () => (await machines()).length === 4);
    killed.signal("SIGKILL");
    await killed.ended;
    // As if it had come so far before it was killed.
    const [old] = before;
    const { status } = await platform.ask(`POST /v1/apps/web/machines/${old}/metadata/hangar_retired_by_release`, {
      body: { value: "3" },
    });
    assert.equal(status, 204);
    await platform.ask(`POST /v1/apps/web/machines/${old}/cordon`);
    for (let looks = 0; looks < 3; looks++) await clock.advance(LEASE_MS / 2 + LOOK_MS);
    await until("the release has ended", async () => (await release(3)).status === "failed");
    const plan = (await ok("deploy --dry-run")).lines.join("\n");
    assert.match(plan, /^uncordon .*\ndestroy .*left by an interrupted deploy\ndestroy .*\nupdate .*\nupdate .*$/);
    await ok("deploy --stable-for 0s");
    assert.deepEqual(await ids(), before);
    assert.deepEqual(await modes(), ["two", "two"]);
  });

  test("machines that a blue-green deploy had replaced when it was killed go with the next deploy", async (t) => {
    const { platform, ok, machines, release } = await start(t);
    const [old, kept] = await machines();
    assert.ok(old && kept);
    await platform.ask(`POST /v1/apps/web/machines/${old.id}/metadata/hangar_retired_by_release`, {
      body: { value: "2" },
    });
    await ok("deploy --stable-for 0s");
    assert.deepEqual([(await release(3)).status, (await machines()).map(({ id }) => id)], ["complete", [kept.id]]);
  });

  for (const signal of ["SIGINT", "SIGTERM"] as const)
    test(`${signal} rolls the deploy back and its release says so`, async (t) => {
      const { hangar, machines, modes, release } = await start(t);
      const child = hangar(`deploy ${FOREVER}`);
      await until("the first machine is updated", async () => (await modes()).includes("two"));
      child.signal(signal);
      assert.equal((await child.ended).code, signal === "SIGINT" ? 130 : 143, child.complaints);
      assert.match(child.complaints, /rolling back; once more ends this at once/);
      const { status, failure } = await release(3);
      assert.deepEqual([status, failure], ["failed", `it was interrupted (${signal})`]);
      assert.deepEqual([await modes(), (await machines()).length], [["one", "one"], 2]);
    });

  test("a deploy whose release was given up changes nothing more", async (t) => {
    const { platform, hangar, modes, release } = await start(t);
    const child = hangar(`deploy ${FOREVER}`);
    await until("the first machine is updated", async () => (await modes()).includes("two"));
    const body = { status: "failed", failure: "given up" };
    assert.equal((await platform.ask("POST /v1/apps/web/releases/3", { body })).status, 200);
    assert.notEqual((await child.ended).code, 0);
    assert.match(child.complaints, /release 3 is no longer this deploy's: .*given up/);
    assert.deepEqual([(await release(3)).failure, await modes()], ["given up", ["one", "two"]]);
  });
});
