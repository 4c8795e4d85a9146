/** One-off tasks, scheduled runs and release commands with real containers: output, exit codes, what stays to be read. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { after, before, suite, test } from "node:test";
import { packagesMissing } from "../debian-root.ts";
import { shell, tempDir, until } from "../support.ts";
import { Child, ROOT } from "./child.ts";
import { type DebianMachines, debianMachines } from "./debian-machines.ts";

const PACKAGES = ["busybox-static", "dash", "coreutils"];
const cwd = tempDir();

interface Run {
  id: string;
  kind: string;
  state: string;
  command: string;
  exit_code: number | null;
  signal: number | null;
  oom_killed: boolean;
  started_by: string;
  duration_ms: number;
  machine_id: string;
}

suite("runs", { skip: packagesMissing(PACKAGES) }, () => {
  let debian: DebianMachines;
  before(async () => {
    debian = await debianMachines(PACKAGES);
    await debian.platform.ask("POST /v1/apps", { body: { app_name: "web" } });
  });
  after(() => debian.close());

  const env = () => ({ HOME: cwd, HANGAR_DATA_DIR: debian.data_dir, HANGAR_APP: "web" });
  const hangar = `"${process.execPath}" "${join(ROOT, "bin/hangar.mjs")}"`;
  const run = (line: string) => shell(line.replaceAll("hangar ", `${hangar} `), { cwd, ...env() });
  const runs = async (query = ""): Promise<Run[]> =>
    (await debian.platform.ask(`GET /v1/apps/web/runs${query}`)).body.runs;
  const gone = (id: string) =>
    until(`machine ${id} is gone`, async () => {
      const { body } = await debian.platform.ask(`GET /v1/apps/web/machines/${id}`);
      return body.state === "destroyed";
    });

  test("run --once prints the output, exits with the program's code, and the run stays to be read", async () => {
    const script = "echo out; echo err >&2; printf 'no end of line'; exit 3";
    const { status, stdout, stderr } = await run(`hangar run --once debian -- sh -c "${script}"`);
    assert.deepEqual([status, stdout, stderr], [3, "out\nno end of line\n", "err\n"]);
    const [last] = await runs();
    assert.ok(last);
    const { kind, state, exit_code, signal, oom_killed, command, machine_id } = last;
    assert.deepEqual([kind, state, exit_code, signal, oom_killed], ["once", "failed", 3, null, false]);
    assert.equal(command, `sh -c ${script}`);
    await gone(machine_id);
    assert.match((await run(`hangar runs logs ${last.id}`)).stdout, /^out\n(err\n)?no end of line\n/m);
    assert.equal((await run(`hangar runs logs ${last.id} --follow`)).status, 3);
    const shown = (await run(`hangar runs show ${last.id}`)).stdout;
    assert.match(shown, /ended with +exit code 3\n/);
    assert.match(shown, /took +\d+\.\d s/);
    assert.match((await run("hangar runs")).stdout, /once +sh -c echo out.* +failed +exit code 3 /);
    assert.deepEqual(await runs("?state=complete"), []);
    assert.equal((await run("hangar run --once debian -- true")).status, 0);
  });

  test("a signal and out of memory are distinguished from an exit code", async () => {
    const killed = await run("hangar run --once debian -- sh -c 'kill -KILL $$'");
    assert.deepEqual([killed.status, killed.stderr.includes("failed: signal 9")], [137, true], killed.stderr);
    const full = await run("hangar run --once debian --memory 256 -- busybox tail /dev/zero");
    assert.deepEqual([full.status, full.stderr.includes("failed: out of memory")], [137, true], full.stderr);
    const [oom, signal] = await runs();
    assert.deepEqual([oom?.oom_killed, signal?.oom_killed, signal?.signal], [true, false, 9]);
    const none = await run("hangar run --once debian -- /no/such/program");
    assert.notEqual(none.status, 0);
    assert.match(none.stdout + none.stderr, /no\/such\/program/);
  });

  test("Ctrl C ends the task and its machine, and so does a closed pipe", async () => {
    const words = "run --once debian -- sh -c".split(" ");
    const script = "trap 'echo stopping; exit 0' INT; echo ready; while :; do sleep 0.1; done";
    const child = new Child(process.execPath, [join(ROOT, "bin/hangar.mjs"), ...words, script], {
      cwd,
      env: { ...process.env, ...env() },
    });
    await child.until(/^ready$/);
    child.signal("SIGINT");
    assert.deepEqual(await child.ended, { code: 130, signal: null }, child.complaints);
    assert.deepEqual(child.lines, ["ready", "stopping"]);
    const [stopped] = await runs();
    await gone(stopped?.machine_id ?? "");

    const piped = await run("hangar run --once debian -- sh -c 'while :; do echo y; sleep 0.01; done' | head -2");
    assert.equal(piped.stdout, "y\ny\n");
    await until("the endless task has ended", async () => (await runs("?state=running")).length === 0);
    const [endless] = await runs();
    assert.notEqual(endless?.id, stopped?.id);
    await gone(endless?.machine_id ?? "");
  });

  test("a release command that fails stops the deploy, and its whole log is read afterwards", async () => {
    const file = (command: string) => `
app = "shop"
image = "debian"
[experimental]
cmd = ["sleep", "1000"]
[env]
GREETING = "hello"
[deploy]
release_command = "sh -c '${command}'"
`;
    writeFileSync(
      join(cwd, "hangar.toml"),
      file("i=0; while [ $i -lt 50 ]; do echo step $i; i=$((i+1)); done; exit 5"),
    );
    const shop = (line: string) => run(`HANGAR_APP=shop; export HANGAR_APP; ${line}`);
    const failed = await shop("hangar apps create shop && hangar deploy --stable-for 0s");
    assert.equal(failed.status, 1, failed.stderr);
    assert.match(failed.stderr, /the release command did not succeed: its program exited with code 5/);
    const id = /all of it: hangar runs logs (\w+)/.exec(failed.stderr)?.[1] ?? "";
    const { stdout } = await shop(`hangar runs logs ${id}`);
    assert.equal(stdout, `${Array.from({ length: 50 }, (_, at) => `step ${at}\n`).join("")}`);
    assert.match((await shop("hangar runs list")).stdout, /release +sh -c .* +failed +exit code 5 /);
    assert.deepEqual((await debian.platform.ask("GET /v1/apps/shop/machines")).body, []);

    writeFileSync(join(cwd, "hangar.toml"), file("exit 0"));
    const well = await shop("hangar deploy --stable-for 0s");
    assert.equal(well.status, 0, well.stderr);
    const once = await shop("hangar run --once --release -- sh -c 'echo $GREETING'");
    assert.deepEqual([once.status, once.stdout], [0, "hello\n"], once.stderr);
  });

  test("a run missed while the platform was down takes place once; one due during another is skipped", async () => {
    const { platform } = debian;
    const config = {
      image: "debian",
      schedule: "hourly",
      restart: { policy: "no" },
      init: { cmd: ["sh", "-c", "echo from run $HANGAR_MACHINE_VERSION; sleep 1000"] },
    };
    const { id } = (await platform.ask("POST /v1/apps/web/machines", { body: { skip_launch: true, config } })).body;
    const mine = () => runs(`?machine_id=${id}`);
    assert.deepEqual(await mine(), [], "it waits for its time");
    /** As if the platform had been down when it was due. */
    const dueWhileDown = async (): Promise<void> => {
      await debian.platform.close();
      const database = new DatabaseSync(join(debian.data_dir, "hangar.db"));
      database.prepare("UPDATE machines SET next_run_at = ? WHERE id = ?").run(Date.now() - 60_000, id);
      database.close();
      await debian.restart();
    };
    await dueWhileDown();
    await until("it runs", async () => (await mine())[0]?.state === "running");
    await until("it has written", async () => {
      const [first] = await mine();
      const { lines } = (await debian.platform.ask(`GET /v1/apps/web/runs/${first?.id}/logs`)).body;
      return lines.length === 1;
    });
    await dueWhileDown();
    const [skipped, first] = await until("the second was due", async () => {
      const found = await mine();
      return found.length === 2 && found;
    });
    assert.deepEqual(
      [skipped, first].map((one) => [one?.kind, one?.state, one?.started_by]),
      [
        ["schedule", "skipped", "schedule"],
        ["schedule", "running", "schedule"],
      ],
    );
    await debian.platform.ask(`POST /v1/apps/web/machines/${id}/stop`);
    await until("it was stopped", async () => (await mine())[1]?.state === "stopped");
    await dueWhileDown();
    await until("it runs again", async () => (await mine())[0]?.state === "running");
    const [again] = await mine();
    const lines = await until("the third has written", async () => {
      const { body } = await debian.platform.ask(`GET /v1/apps/web/runs/${again?.id}/logs`);
      return body.lines.length > 0 && body.lines;
    });
    assert.equal(lines.length, 1, "only its own lines");
    const former = (await debian.platform.ask(`GET /v1/apps/web/runs/${first?.id}/logs`)).body.lines;
    assert.equal(former.length, 1, "and those of the run before are still there");
  });
});
