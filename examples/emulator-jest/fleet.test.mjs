import { startPlatform } from "@hangar-machines/hangar/testing";
import { keep } from "../emulator-tests/fleet.mjs";

const platform = await startPlatform({ frozen: true });
const { client, clock, faults } = platform;
const params = { app_name: "fleet" };
const config = { image: "any/name:works" };
const machines = () => client.call("GET /v1/apps/:app_name/machines", { params, query: {} });

afterAll(() => platform.close());
beforeEach(async () => {
  await platform.reset();
  await client.call("POST /v1/apps", { body: { app_name: "fleet", org_slug: "personal" } });
});

test("what is missing is made, and runs a moment later", async () => {
  await keep(client, "fleet", 2, config);
  await clock.advance("1s");
  expect((await machines()).map(({ state }) => state)).toEqual(["started", "started"]);
});

test("a platform that has no room is told apart from one that is broken", async () => {
  faults.add({ route: "POST /v1/apps/:app_name/machines", fail: "rate_limited" });
  await expect(keep(client, "fleet", 1, config)).rejects.toMatchObject({ http: 429 });
  expect(await machines()).toEqual([]);
});
