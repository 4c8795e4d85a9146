/**
 * Two hosts with real machines. A host's process is stopped while its machines run on: they stand still before another
 * host begins, and when the process goes on, what moved never takes another step, and what stayed goes on where it was.
 */
import assert from "node:assert/strict";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { postgresMissing, startPostgres } from "../postgres.ts";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { type Child, startProgram } from "./child.ts";
import { until } from "./hosts-support.ts";
import { leftBehind, nodeIdOf } from "./leaks.ts";

const MACHINES = "/v1/apps/web/machines";
/** Says the time again and again, by the wall clock, which all machines of a box share. */
const TICKER = ["sh", "-c", "trap 'exit 0' TERM INT; while :; do echo tick $EPOCHREALTIME; sleep 0.05; done"];
const CONFIG = { image: "busybox", init: { exec: TICKER }, guest: { cpus: 1, memory_mb: 256 } };

interface Host {
  child: Child;
  /** Times a machine told, in seconds. */
  ticks(machine: string): number[];
}

interface House {
  ask(method: string, path: string, body?: object): Promise<Record<string, unknown>>;
  host(): Promise<Host>;
}

async function house(t: TestContext): Promise<House> {
  const dir = mkdtempSync(join(tmpdir(), "hangar-hosts-"));
  // The last that was made goes first: machines before what they are made of, processes before their database.
  const made = new AsyncDisposableStack();
  t.after(() => made.disposeAsync());
  made.defer(() => rmSync(dir, { recursive: true, force: true }));
  const images = join(dir, "images");
  mkdirSync(images);
  busyboxLayer(join(images, "busybox"));
  const postgres = await startPostgres();
  made.defer(() => postgres.stop());
  const shared = ["--driver", "runc", "--database", await postgres.database(), "--host-lease", "3"];
  const program = async (name: string, args: readonly string[]): Promise<{ child: Child; told: string }> => {
    const flags = ["--data-dir", join(dir, name), "--listen", "127.0.0.1:0", ...shared, ...args];
    const child = startProgram({ after: () => {} }, "test/system/hosts-runc-node.ts", [images, ...flags]);
    made.defer(async () => void (await child.kill()));
    return { child, told: (await child.until(/^ready /)).slice("ready ".length) };
  };
  const { told: base_url } = await program("control", ["--role", "control"]);
  const token = readFileSync(join(dir, "control/token"), "utf8").trim();
  const ask: House["ask"] = async (method, path, body) => {
    const headers = { authorization: `Bearer ${token}`, "content-type": "application/json" };
    const answer = await fetch(`${base_url}${path}`, { method, headers, body: body ? JSON.stringify(body) : null });
    const words = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${words}`);
    return JSON.parse(words) as Record<string, unknown>;
  };
  let hosts = 0;
  return {
    ask,
    async host() {
      const name = `host${++hosts}`;
      const join_token = String((await ask("POST", "/v1/platform/host_join_tokens"))["token"]);
      const data_dir = join(dir, name);
      made.defer(async () => {
        const installation = { data_dir, node_id: nodeIdOf(data_dir) };
        await takeDown({ ...installation, clock: systemClock, log: silentLog });
        assert.deepEqual(await leftBehind(installation, "driver is closed"), {}, "nothing of it is left");
      });
      const { child } = await program(name, ["--role", "host", "--join-token", join_token]);
      const log = (machine: string): string => join(data_dir, "logs", machine, "log");
      const ticks = (machine: string): number[] =>
        existsSync(log(machine))
          ? [...readFileSync(log(machine), "utf8").matchAll(/tick ([\d.]+)$/gm)].map(([, at]) => Number(at))
          : [];
      return { child, ticks };
    },
  };
}

const missing = realMachinesMissing() ?? postgresMissing();

suite("several hosts with real machines", { skip: missing }, () => {
  test("a host that sleeps through its lease: nothing runs twice, and what stayed goes on where it was", async (t) => {
    const { ask, host } = await house(t);
    const first = await host();
    await ask("POST", "/v1/apps", { app_name: "web" });
    const create = async (config: object): Promise<string> => {
      const { id } = await ask("POST", MACHINES, { config: { ...CONFIG, ...config } });
      await ask("GET", `${MACHINES}/${String(id)}/wait?state=started&timeout=60`);
      return String(id);
    };
    const moves = await create({ metadata: { hangar_on_host_loss: "move" } });
    const stays = await create({});
    await until("both tick", async () => first.ticks(moves).length > 3 && first.ticks(stays).length > 3);
    const second = await host();

    first.child.signal("SIGSTOP");
    await until("it runs on the other host", async () => second.ticks(moves).length > 3);
    const last = first.ticks(moves).at(-1) ?? 0;
    const [begun = 0] = second.ticks(moves);
    assert.ok(last < begun, `the last tick here was at ${last}, the first there at ${begun}`);
    t.diagnostic(`stood still ${(begun - last).toFixed(1)} s before the other host began, with a lease of 3 s`);
    const resting = first.ticks(stays).length;

    first.child.signal("SIGCONT");
    await until("what stayed goes on", async () => first.ticks(stays).length > resting + 3);
    assert.ok((first.ticks(moves).at(-1) ?? 0) <= last, "what moved took not one step more");
    const events = JSON.stringify(await ask("GET", `${MACHINES}/${stays}`));
    assert.doesNotMatch(events, /"exit"/, "what stayed was never ended");
    const ran = await ask("POST", `${MACHINES}/${moves}/exec`, { command: ["echo", "reached"] });
    assert.equal(ran["stdout"], "reached\n", "a command reaches the host where it is now");
    for (const id of [moves, stays]) await ask("DELETE", `${MACHINES}/${id}?force=true`);
    for (const id of [moves, stays]) await ask("GET", `${MACHINES}/${id}/wait?state=destroyed&timeout=60`);
  });
});
