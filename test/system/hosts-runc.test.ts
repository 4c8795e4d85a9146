/**
 * Two hosts with real machines. A host's process is stopped while its machines run on: those that another host may start
 * stand still before it begins, and when the process goes on, what moved never takes another step. What nobody else may
 * start runs all the time.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { postgresMissing } from "../postgres.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { house, longestPause, MACHINES, TICKING } from "./hosts-runc-house.ts";
import { until } from "./hosts-support.ts";

const missing = realMachinesMissing() ?? postgresMissing();

suite("several hosts with real machines", { skip: missing }, () => {
  test("a host stopped past its lease runs nothing twice, and machines that may not move run on", async (t) => {
    const { ask, host } = await house(t);
    const first = await host();
    await ask("POST", "/v1/apps", { app_name: "web" });
    const create = async (config: object): Promise<string> => {
      const { id } = await ask("POST", MACHINES, { config: { ...TICKING, ...config } });
      await ask("GET", `${MACHINES}/${String(id)}/wait?state=started&timeout=60`);
      return String(id);
    };
    const moves = await create({ metadata: { hangar_on_host_loss: "move" } });
    const stays = await create({});
    await until("both tick", async () => first.ticks(moves).length > 3 && first.ticks(stays).length > 3);
    await until("what stays needs no lease", async () => first.exempt(stays));
    assert.equal(first.exempt(moves), false);
    const second = await host();

    first.child.signal("SIGSTOP");
    await until("it runs on the other host", async () => second.ticks(moves).length > 3);
    const last = first.ticks(moves).at(-1) ?? 0;
    const [begun = 0] = second.ticks(moves);
    assert.ok(last < begun, `the last tick here was at ${last}, the first there at ${begun}`);
    t.diagnostic(`stood still ${(begun - last).toFixed(1)} s before the other host began, with a lease of 3 s`);
    const counted = first.ticks(stays).length;
    await until("what nobody else may start runs all the time", async () => first.ticks(stays).length > counted + 3);
    assert.ok(longestPause(first.ticks(stays)) < begun - last, "without a pause as long as the other's");

    first.child.signal("SIGCONT");
    await until(
      "it sends heartbeats again",
      async () => String((await ask("GET", `${MACHINES}/${stays}`))["host_status"]) === "ok",
    );
    assert.ok((first.ticks(moves).at(-1) ?? 0) <= last, "what moved took not one step more");
    const events = JSON.stringify(await ask("GET", `${MACHINES}/${stays}`));
    assert.doesNotMatch(events, /"exit"/, "what stayed was never ended");
    const ran = await ask("POST", `${MACHINES}/${moves}/exec`, { command: ["echo", "reached"] });
    assert.equal(ran["stdout"], "reached\n", "a command reaches the host where it is now");
    for (const id of [moves, stays]) await ask("DELETE", `${MACHINES}/${id}?force=true`);
    for (const id of [moves, stays]) await ask("GET", `${MACHINES}/${id}/wait?state=destroyed&timeout=60`);
  });
});
