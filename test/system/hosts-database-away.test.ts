/**
 * The database of a platform is away for several leases. Machines that no other host may start run on and are served by
 * what the edge proxy knew, those that another host may start stand still, and nothing moves when it is back.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "#proxy/fixtures.ts";
import { postgresMissing } from "../postgres.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { house, LEASE_S, longestPause, MACHINES, TICKER, TICKING } from "./hosts-runc-house.ts";
import { until } from "./hosts-support.ts";

const LEASES = 4;
const SERVE = "mkdir /www; echo served > /www/index.html; httpd -p 8080 -h /www";

suite("database outage with several hosts", { skip: realMachinesMissing() ?? postgresMissing() }, () => {
  test("machines that no other host may start run on and are served, and nothing moves", async (t) => {
    const { ask, host, database } = await house(t);
    const hosts = [await host(), await host()];
    await ask("POST", "/v1/apps", { app_name: "web" });
    await ask("POST", "/v1/apps/web/ip_assignments", { type: "shared_v4" });
    const port = await freePort();
    const create = async (config: object): Promise<{ id: string; host: string }> => {
      const { id } = await ask("POST", MACHINES, { config: { ...TICKING, ...config } });
      await ask("GET", `${MACHINES}/${String(id)}/wait?state=started&timeout=60`);
      return (await ask("GET", `${MACHINES}/${String(id)}`)) as { id: string; host: string };
    };
    const serving = { init: { exec: ["sh", "-c", `${SERVE}; ${TICKER[2]}`] } };
    const services = [{ protocol: "tcp", internal_port: 8080, ports: [{ port, handlers: ["http"] }] }];
    const stays = await create({ ...serving, services });
    const moves = await create({ metadata: { hangar_on_host_loss: "move" } });
    const stand_by = await create({ metadata: { hangar_on_host_loss: "" } });
    await ask("POST", MACHINES, { config: { ...TICKING, standbys: [stand_by.id] }, skip_launch: true });
    const of = (id: string): number[] => hosts.flatMap((one) => one.ticks(id)).sort((a, b) => a - b);
    const exempt = (id: string): boolean => hosts.some((one) => one.exempt(id));
    const served = async (): Promise<string> =>
      (await (await fetch(`http://127.0.0.1:${port}/`, { headers: { connection: "close" } })).text()).trim();
    await until("it is served", async () => (await served()) === "served");
    await until("it needs no lease", async () => exempt(stays.id));
    await until("one that has a standby needs one", async () => !exempt(stand_by.id));
    assert.equal(exempt(moves.id), false);

    await database.crash();
    const away = Date.now() / 1000;
    const still = (id: string): boolean => (of(id).at(-1) ?? 0) < Date.now() / 1000 - LEASE_S / 2;
    await until("what others may start stands still", async () => still(moves.id) && still(stand_by.id));
    for (let asked = 0; Date.now() / 1000 < away + LEASES * LEASE_S; asked++) {
      assert.equal(await served(), "served", `after ${asked} requests`);
      await delay(100);
    }
    assert.ok((of(moves.id).at(-1) ?? 0) < away + LEASE_S, "it stood still before its lease was over");
    assert.ok((of(stays.id).at(-1) ?? 0) > away + (LEASES - 1) * LEASE_S, "it ran on");
    await database.start();
    const back = Date.now() / 1000;
    for (const { id } of [moves, stand_by]) await until("it goes on", async () => (of(id).at(-1) ?? 0) > back);
    for (const { id, host: where } of [stays, moves, stand_by]) {
      const now = await until("it is known again", async () => {
        const machine = await ask("GET", `${MACHINES}/${id}`).catch(() => undefined);
        return machine?.["host_status"] === "ok" ? machine : undefined;
      });
      assert.deepEqual([now["state"], now["host"]], ["started", where], "nothing moved");
      assert.doesNotMatch(JSON.stringify(now["events"]), /"exit"/, "nothing ended");
    }
    assert.ok(longestPause(of(stays.id)) < LEASE_S / 2, `it paused for ${longestPause(of(stays.id))} s at most`);
    t.diagnostic(
      `away for ${(back - away).toFixed(1)} s: longest pause ${longestPause(of(stays.id)).toFixed(2)} s of what stays, ` +
        `${longestPause(of(moves.id)).toFixed(1)} s of what another host may start`,
    );
    await ask("DELETE", `/v1/apps/web?force=true`);
    for (const { id } of [stays, moves, stand_by])
      await until("it is destroyed", async () => !hosts.some((one) => one.has(id)));
  });
});
