import assert from "node:assert/strict";
import { after, beforeEach, test } from "node:test";
import { startPlatform } from "@hangar-machines/hangar/testing";
import { keep } from "./fleet.mjs";

const platform = await startPlatform({ frozen: true });
const { client, clock } = platform;
const params = { app_name: "fleet" };
const config = { image: "any/name:works" };
const states = async () =>
  (await client.call("GET /v1/apps/:app_name/machines", { params, query: {} })).map(({ state }) => state).sort();

after(() => platform.close());
beforeEach(async () => {
  await platform.reset();
  await client.call("POST /v1/apps", { body: { app_name: "fleet", org_slug: "personal" } });
});

test("what is missing is made, and runs a moment later", async () => {
  await keep(client, "fleet", 3, config);
  await clock.advance("1s");
  assert.deepEqual(await states(), ["started", "started", "started"]);
});

test("what is too many goes", async () => {
  await keep(client, "fleet", 3, config);
  await clock.advance("1s");
  await keep(client, "fleet", 1, config);
  await clock.advance("10s");
  assert.deepEqual(await states(), ["started"]);
});

test("a machine that ends stays in the count, so that nothing is made twice", async () => {
  await keep(client, "fleet", 2, { ...config, env: { SIM_RUN_MS: "1000" }, restart: { policy: "no" } });
  await clock.advance("1m");
  await keep(client, "fleet", 2, config);
  assert.deepEqual(await states(), ["stopped", "stopped"]);
});
