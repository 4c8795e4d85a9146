/** Several processes that are one platform: joining, reading each other's writes, reaching in, moving, draining. */
import assert from "node:assert/strict";
import { dirname } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { postgresMissing } from "../postgres.ts";
import { tempDir } from "../support.ts";
import { startProgram } from "./child.ts";
import type { Daemon } from "./daemon.ts";
import { insist, type Machine, machinesOf, hangar as runHangar, startCluster, until } from "./hosts-support.ts";

const MACHINES = "/v1/apps/web/machines";
const CONFIG = { image: "web:1", guest: { cpus: 1, memory_mb: 256 } };

async function hangar(t: TestContext, daemon: Daemon, ...words: string[]): Promise<string> {
  const { code, said } = await runHangar(t, daemon, ...words);
  assert.equal(code, 0, `hangar ${words.join(" ")}: ${said}`);
  return said;
}

async function show(daemon: Daemon, id: string): Promise<Machine> {
  return (await daemon.call("GET", `${MACHINES}/${id}`)).body as unknown as Machine;
}

/** A token is made for one host, and a host without one fails with a hint. */
async function tokens(t: TestContext, control: Daemon, flags: readonly string[]): Promise<void> {
  const [, token = ""] = /^(hjt_\S+)/m.exec(await hangar(t, control, "hosts", "join-token")) ?? [];
  assert.match(token, /^hjt_[0-9a-f]{12}_[0-9a-f]{64}$/);
  const role = ["--role", "host", "--driver", "sim", "--data-dir", tempDir(), ...flags];
  for (const [more, words] of [
    [[], /needs --join-token; `hangar hosts join-token` makes one/],
    [["--join-token", token.replace(/.{8}$/, "00000000")], /is not one of this platform, was used, or is older/],
  ] as const) {
    const child = startProgram(t, "src/main.ts", [...role, ...more]);
    assert.equal((await child.ended).code, 1);
    assert.match(child.complaints, words);
  }
}

suite("several hosts, one platform", { skip: postgresMissing() }, () => {
  test("a write acknowledged by one control process is visible in the other; waits, logs and exec work in both", async (t) => {
    const { controls, hosts } = await startCluster(t, { controls: 2, hosts: 2 });
    const [a, b] = controls;
    assert.ok(a && b);
    const both: readonly Daemon[] = [a, b];
    await insist(a, "POST", "/v1/apps", { app_name: "web", org_slug: "personal" });
    for (let index = 0; index < 4; index++) {
      const made = await insist(a, "POST", MACHINES, { config: CONFIG });
      const id = String(made["id"]);
      assert.equal((await show(b, id)).id, id, "read from one what the other wrote");
      const waited = await b.call("GET", `${MACHINES}/${id}/wait?state=started&timeout=30`);
      assert.equal(waited.status, 200, JSON.stringify(waited.body));
      for (const daemon of both) {
        const ran = await daemon.call("POST", `${MACHINES}/${id}/exec`, { command: ["echo", "hello", id] });
        assert.deepEqual([ran.status, ran.body["stdout"]], [200, `hello ${id}\n`], JSON.stringify(ran.body));
        const { body } = await daemon.call("GET", `${MACHINES}/${id}/logs`);
        assert.match(JSON.stringify(body), /started web:1/);
      }
    }
    const used = new Set((await machinesOf(b)).map(({ host }) => host));
    assert.deepEqual(used, new Set(hosts.map(({ id }) => id)), "both hosts got some");
  });

  test("machines move, and a host is drained and removed, without losing anything", async (t) => {
    const { controls, hosts, flags } = await startCluster(t, { controls: 1, hosts: 2 });
    const [control] = controls;
    const [first, second] = hosts;
    assert.ok(control && first && second);
    await tokens(t, control, flags);
    assert.match(await hangar(t, control, "hosts", "list"), new RegExp(`${first.id}.* ok`));
    await insist(control, "POST", "/v1/apps", { app_name: "web", org_slug: "personal" });
    const ids: string[] = [];
    for (let index = 0; index < 4; index++)
      ids.push(String((await insist(control, "POST", MACHINES, { config: CONFIG }))["id"]));
    const all = async (look: (machine: Machine) => boolean): Promise<boolean> => {
      const machines = await machinesOf(control);
      return machines.length === ids.length && machines.every((one) => one.state === "started" && look(one));
    };
    await until("all run", () => all(() => true));

    const [id = ""] = ids;
    const before = await show(control, id);
    assert.match(await hangar(t, control, "machines", "move", id, "-a", "web"), new RegExp(`before on ${before.host}`));
    const after = await show(control, id);
    assert.notEqual(after.host, before.host);
    assert.equal(after.state, "started");
    await control.call("POST", `${MACHINES}/${id}/stop`);
    await control.call("GET", `${MACHINES}/${id}/wait?state=stopped&timeout=30`);
    const back = await until("one that rests moves too, once nothing of it is left there", async () => {
      const moved = await control.call("POST", `${MACHINES}/${id}/move`, { host_id: before.host });
      return moved.status === 200 && (await show(control, id));
    });
    assert.deepEqual([back.host, back.state], [before.host, "stopped"]);
    await control.call("POST", `${MACHINES}/${id}/start`);
    await until("it runs again", () => all(() => true));

    assert.match(await hangar(t, control, "hosts", "drain", first.id), /0 cannot/);
    await until("all run elsewhere", () => all(({ host }) => host === second.id));
    const made = await show(control, String((await insist(control, "POST", MACHINES, { config: CONFIG }))["id"]));
    assert.equal(made.host, second.id, "nothing new comes to a host that is drained");
    ids.push(made.id);
    const volume = await control.call("POST", "/v1/apps/web/volumes", { name: "data", size_gb: 1, encrypted: false });
    assert.equal(volume.status, 200, JSON.stringify(volume.body));
    await hangar(t, control, "hosts", "uncordon", first.id);
    const early = await control.call("DELETE", `/v1/platform/hosts/${first.id}`);
    assert.deepEqual([early.status, early.body["status"]], [409, "conflict"], "a host that runs is not forgotten");
    await first.child.kill();
    assert.match(await hangar(t, control, "hosts", "fail", first.id), /marked as failed/);
    await until("its lease has ended", async () => {
      const { body } = await control.call("GET", `/v1/platform/hosts/${first.id}`);
      return body["lease_ends_at"] === "";
    });
    // Nor is one with a machine or a volume: neither has come here since it was drained.
    assert.match(await hangar(t, control, "hosts", "remove", first.id), /is forgotten/);
    assert.equal((await control.call("GET", `/v1/platform/hosts/${first.id}`)).status, 404);
    const own_dir = ["--role", "host", "--driver", "sim", "--data-dir", dirname(first.journal)];
    const removed = startProgram(t, "src/main.ts", [...own_dir, ...flags]);
    assert.equal((await removed.ended).code, 1);
    assert.match(removed.complaints, /was removed from it; it joins as a new one with --join-token/);
    await until("all run on", () => all(({ host }) => host === second.id));
  });
});
