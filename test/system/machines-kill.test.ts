/** A real platform killed with -9 while machines are made, started, stopped and leased: nothing acknowledged is lost (M4 on sim, L4). */
import assert from "node:assert/strict";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { random, runs, seed, tempDir, until } from "../support.ts";
import { startDaemon } from "./daemon.ts";

interface Told {
  state: string;
  pending?: boolean;
}

test("after repeated kills the platform has every acknowledged machine, lease and operation (L4)", async (t) => {
  const next = random(seed(t));
  const dir = tempDir();
  const start = () => startDaemon(t, dir, ["--log-level", "error"]);
  let victim = await start();
  /** Undefined when the platform died before it answered. */
  const ask = async (method: string, path: string, body?: object) =>
    await victim.call(method, path, body).catch(() => undefined);
  await ask("POST", "/v1/apps", { app_name: "web" });
  const machines = "/v1/apps/web/machines";
  const told = new Map<string, Told>();
  const leases = new Map<string, string>();
  const kills = runs(2, 40, 600);
  /** Makes a machine and, unless it is leased, wishes something of it. False when the platform is gone. */
  const visit = async (): Promise<boolean> => {
    const lease = next() < 0.3 ? { lease_ttl: 3600 } : {};
    const made = await ask("POST", machines, { config: { image: "x" }, ...lease });
    if (!made) return false;
    assert.ok(made.status < 300, JSON.stringify(made.body));
    const { id, nonce } = made.body as { id: string; nonce?: string };
    told.set(id, { state: "started" });
    if (nonce) {
      leases.set(id, nonce);
      return true;
    }
    const [verb, state] = next() < 0.5 ? ["stop", "stopped"] : ["suspend", "suspended"];
    // Until it is acknowledged either outcome is right.
    told.set(id, { state, pending: true });
    const wished = await ask("POST", `${machines}/${id}/${verb}`);
    if (!wished) return false;
    assert.ok(wished.status < 300, JSON.stringify(wished.body));
    told.set(id, { state });
    return true;
  };
  const client = async (): Promise<void> => {
    while (await visit());
  };
  for (let kill = 0; kill < kills; kill++) {
    const before = told.size;
    const clients = Promise.all(Array.from({ length: 8 }, client));
    await until("machines are made", () => told.size > before + 5);
    await delay(Math.floor(next() * 700));
    await victim.child.kill();
    await clients;
    victim = await start();
  }
  let lost = 0;
  for (const [id, { state, pending }] of told) {
    const settled = await ask("GET", `${machines}/${id}/wait?state=settled&timeout=60`);
    assert.equal(settled?.status, 200, `${id} settles`);
    const machine = (await ask("GET", `${machines}/${id}`))?.body ?? {};
    const right = machine["state"] === state || (pending && machine["state"] === "started");
    if (!right) lost++;
    if (leases.has(id)) assert.equal(machine["nonce"], leases.get(id), "its lease is still held");
  }
  assert.equal(lost, 0, "wishes that were acknowledged and not carried out");
  victim.child.signal("SIGTERM");
  assert.equal((await victim.child.ended).code, 0);
  t.diagnostic(`${kills} kills, ${told.size} machines acknowledged, ${leases.size} leases, 0 lost`);
  assert.ok(told.size > kills * 5);
});
