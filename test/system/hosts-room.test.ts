/** Hosts that are full: what is to leave a lost or drained one waits and says why, and goes when there is room. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { postgresMissing } from "../postgres.ts";
import { insist, type Machine, machinesOf, startCluster, until } from "./hosts-support.ts";

const MACHINES = "/v1/apps/web/machines";
const CONFIG = { image: "web:1", metadata: { hangar_on_host_loss: "move" }, guest: { cpus: 1, memory_mb: 256 } };

suite("hosts without capacity", { skip: postgresMissing() }, () => {
  test("a machine of a lost or drained host waits for capacity and then starts elsewhere", async (t) => {
    const { controls, hosts } = await startCluster(t, { controls: 2, hosts: 2, cpus: 1 });
    const [one, two] = controls;
    assert.ok(one && two);
    await insist(one, "POST", "/v1/apps", { app_name: "web", org_slug: "personal" });
    const make = async (): Promise<string> => String((await insist(two, "POST", MACHINES, { config: CONFIG }))["id"]);
    const ids = [await make(), await make()];
    const show = async (id: string): Promise<Machine & { waiting?: string }> =>
      (await machinesOf(two)).find((machine) => machine.id === id) ?? assert.fail(`${id} is there`);
    const runs = async (id: string, host?: string): Promise<boolean> => {
      const machine = await show(id);
      return machine.state === "started" && machine.host_status === "ok" && (host ?? machine.host) === machine.host;
    };
    for (const id of ids) await until("both run", () => runs(id));
    const [first, second] = hosts;
    assert.ok(first && second);
    const [lost = "", filler = ""] = (await show(ids[0] ?? "")).host === first.id ? ids : ids.toReversed();

    await first.child.kill();
    const waiting = await until("it waits, and says why", async () => (await show(lost)).waiting);
    assert.match(waiting, /insufficient resources.* requested in region local/);
    await insist(one, "DELETE", `${MACHINES}/${filler}?force=true`);
    await until("it runs where there is room now", () => runs(lost, second.id));
    assert.equal((await show(lost)).waiting, undefined);

    await first.again();
    const more = await until("there is room for one more", async () => {
      const made = await two.call("POST", MACHINES, { config: CONFIG });
      return made.status === 200 && String(made.body["id"]);
    });
    await until("both hosts are full again", () => runs(more));
    const { host: home } = await show(more);
    await insist(one, "POST", `/v1/platform/hosts/${home}/drain`);
    assert.match(
      await until("it waits, and says why", async () => (await show(more)).waiting),
      /insufficient resources/,
    );
    await until("it runs on meanwhile", () => runs(more, home));
    await insist(one, "DELETE", `${MACHINES}/${lost}?force=true`);
    await until("it runs elsewhere", async () => (await runs(more)) && (await show(more)).host !== home);
  });
});
