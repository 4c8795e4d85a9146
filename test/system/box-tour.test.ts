/** What a newcomer does: nothing but Node and npm in a fresh system, the checkout, and the commands of the README. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { Guest, quoted } from "../../scripts/prove/box/guest.ts";
import { BOX, eventually, LEFTOVERS, noBox, processesOf, runMachine, say } from "./box-support.ts";
import { ROOT } from "./child.ts";

const HOME = "/root/hangar";
/** The README's own line; `npx` would cost more than the command, a hundred seconds in emulation. */
const PATH = /^export PATH=.*$/m.exec(readFileSync(join(ROOT, "README.md"), "utf8"))?.[0] ?? "";
const HANGAR = `cd ${HOME}; ${PATH}; hangar`;
/** A unit of the test alone: `npm start` in a terminal that stays open. */
const TERMINAL = `systemd-run --quiet --unit=terminal --slice=user.slice --working-directory=${HOME} -p KillMode=process`;

suite(`${BOX.title}: the README`, { skip: noBox }, () => {
  let guest: Guest;
  const inHome = async (script: string): Promise<string> => await guest.must(`cd ${HOME}\n${PATH}\n${script}`);
  const health = "curl -sf -m 20 $(cat .hangar/address)/healthz";
  const isReady = async (): Promise<string | true> => {
    const { status, stderr } = await guest.run(`cd ${HOME} && ${health}`);
    return status === 0 || `${stderr} ${(await guest.run("journalctl -u terminal -n 5 --no-pager")).stdout}`;
  };
  const machineOf = (json: string): string => /"id": "(\w+)"/.exec(json)?.[1] ?? assert.fail(json);

  before(async () => {
    guest = await Guest.boot(BOX, say);
    const archive = spawnSync("git", ["archive", "HEAD"], { cwd: ROOT, maxBuffer: 2 ** 30 }).stdout;
    await guest.must(`mkdir ${HOME}; tar -x -C ${HOME}`, { input: archive });
  });
  after(async () => await guest?.close());

  /** The platform as `npm start` brings it; each test can be run alone, and uses what one before it has left. */
  const started = async (): Promise<void> => {
    if ((await isReady()) === true) return;
    await guest.must(`${TERMINAL} npm start`);
    await eventually("npm start", isReady, 45 * 60_000);
    await guest.must(`${HANGAR} apps create limits`);
  };

  test(`${BOX.name}: npm start brings what is missing and is ready (B7)`, async (t) => {
    const began = performance.now();
    await started();
    t.diagnostic(
      `ready ${((performance.now() - began) / 60_000).toFixed(1)} minutes after npm start, packages included`,
    );
    const doctor = await inHome("hangar doctor || true");
    assert.match(doctor, /✔ cgroups +v2/);
    t.diagnostic(
      doctor
        .split("\n")
        .filter((line) => /^[!✘]/.test(line))
        .join("; ") || "hangar doctor finds nothing missing",
    );
  });

  test(`${BOX.name}: the tests of a module pass (B7)`, async () => {
    // All of them take an hour where the processor is emulated; what they need is the same.
    const all = guest.accelerated ? "" : "-- src/core";
    await inHome(`HANGAR_SKIP_SYSTEM=1 npm test ${all}`);
  });

  test(`${BOX.name}: every line of the 60-second tour works (B7)`, async () => {
    await started();
    const readme = readFileSync(join(ROOT, "README.md"), "utf8");
    assert.notEqual(PATH, "", "the README does not say how to add the command to the PATH");
    const tour = /```sh tour\n([\s\S]*?)```/.exec(readme)?.[1] ?? "";
    assert.match(await inHome(tour), /as it should be/);
  });

  test(`${BOX.name}: memory and processes are limited, and a machine over the limit is killed (B8)`, async (t) => {
    await started();
    const eat = "const all = []; for (;;) all.push(Buffer.alloc(8 << 20, 1));";
    const made = await inHome(
      `hangar machines run hangar/hello --app limits --memory 256 --restart no --detach --json -- /usr/bin/node -e ${quoted(eat)}`,
    );
    const id = machineOf(made.slice(made.indexOf("{")));
    await eventually("the end of the one that eats memory", async () => {
      const events = await inHome(`hangar machines events ${id} --json`);
      return /oom|out of memory/i.test(events) || events.slice(-300);
    });
    assert.match(await inHome("hangar apps list"), /limits/);
    t.diagnostic("out of memory at 256 MiB: the machine ended and says so, the platform answers");
  });

  test(`${BOX.name}: suspend and resume, and doctor says which kind it is (B8)`, async (t) => {
    await started();
    const id = await runMachine(guest, HANGAR, "limits", "--name sleeper");
    await inHome(`hangar machines suspend ${id}`);
    const { state } = JSON.parse(await inHome(`hangar machines show ${id} --json`)) as { state: string };
    assert.equal(state, "suspended");
    await inHome(`hangar machines start ${id} && hangar machines wait ${id} --state started`);
    assert.match(await inHome(`hangar machines events ${id} --json`), /"resumed": true/);
    t.diagnostic(/suspend +(.*)/.exec(await inHome("hangar doctor || true"))?.[1] ?? "");
  });

  test(`${BOX.name}: a volume keeps its data over a stop, and a snapshot of it can be restored (B8)`, async () => {
    await started();
    const volume = /"id": "(vol_\w+)"/.exec(
      await inHome("hangar volumes create data --app limits --size 1 --json"),
    )?.[1];
    const id = await runMachine(guest, HANGAR, "limits", `--name keeper --volume ${volume}:/data`);
    await inHome(`hangar machines exec ${id} -- /usr/bin/node -e 'require("fs").writeFileSync("/data/x","kept")'`);
    await inHome(
      `hangar machines stop ${id} && hangar machines start ${id} && hangar machines wait ${id} --state started`,
    );
    const read = `hangar machines exec ${id} -- /usr/bin/node -p 'require("fs").readFileSync("/data/x","utf8")'`;
    assert.match(await inHome(read), /kept/);
    await inHome(`hangar snapshots create ${volume}`);
    let snapshot = "";
    await eventually("the snapshot", async () => {
      const listed = await inHome(`hangar snapshots list ${volume} --json`);
      snapshot = /"(vs_\w+)"/.exec(listed)?.[1] ?? "";
      return (snapshot !== "" && !/"status": "(waiting|running|pending)"/.test(listed)) || listed;
    });
    await inHome(`hangar snapshots restore ${volume} ${snapshot} --name copy`);
    await eventually("the restored volume", async () => {
      const listed = await inHome("hangar volumes list --app limits --json");
      return /"name": "copy",[^}]*"state": "created"/.test(listed) || listed;
    });
  });

  test(`${BOX.name}: the proxy answers for a machine, and it is measured (B8)`, async () => {
    await started();
    const made = await inHome("hangar run hangar/hello --app site --json");
    const { urls } = JSON.parse(made) as { urls: string[] };
    const url = urls[0] ?? assert.fail(made);
    await eventually("an answer through the proxy", async () => {
      const { status, stdout, stderr } = await guest.run(`curl -sf -m 30 ${quoted(url)}`);
      return status === 0 || `${stdout}${stderr}`;
    });
    await eventually("a sample of the machine's memory", async () => {
      const { status, stdout } = await guest.run(`${HANGAR} metrics query 'sum(svc_instance_memory_mem_total)' --json`);
      return (status === 0 && /\d{3,}/.test(stdout)) || stdout;
    });
  });

  test(`${BOX.name}: kill -9 of the platform interrupts no machine; down --all leaves nothing (B8)`, async () => {
    await started();
    const id = await runMachine(guest, HANGAR, "limits", "--name survivor");
    const running = await processesOf(guest, id);
    await inHome("kill -9 $(cat .hangar/pid)");
    assert.equal(await processesOf(guest, id), running);
    // Another terminal: the first unit stays as long as anything that npm started in it runs.
    await guest.must(`${TERMINAL.replace("--unit=terminal", "--unit=another-terminal")} npm start`);
    await eventually("the platform again", isReady);
    assert.equal(await processesOf(guest, id), running);
    await inHome("hangar down --all");
    assert.equal((await guest.must(LEFTOVERS)).trim(), "");
  });
});
