/** What a host lacks that a config asks for is said in the answer. */
import assert from "node:assert/strict";
import { test } from "node:test";
import type { RuntimeDriver } from "#machines/runtime/driver.ts";
import { IMAGE } from "./machine-bench.ts";
import { testPlatform } from "./platform.ts";

const PROBLEM = "the host has no swap (swapon --show lists none)";
const MACHINES = "/v1/apps/web/machines";

const withoutSwap = (driver: RuntimeDriver): RuntimeDriver => {
  const capabilities = driver.capabilities.bind(driver);
  return Object.assign(driver, { capabilities: () => ({ ...capabilities(), swap_problem: PROBLEM }) });
};

for (const [host, around, told] of [
  ["without swap", withoutSwap, [`config.init.swap_size_mb: the machine gets no swap: ${PROBLEM}`]],
  ["with swap", (driver: RuntimeDriver) => driver, undefined],
] as const) {
  test(`swap_size_mb on a host ${host}: a create and an update ${told ? "warn" : "do not warn"}`, async (t) => {
    const { ask } = await testPlatform(t, {}, { around });
    await ask("POST /v1/apps", { body: { app_name: "web" } });
    const config = { image: IMAGE, init: { swap_size_mb: 512 } };
    const created = await ask(`POST ${MACHINES}`, { body: { config } });
    assert.equal(created.status, 200, created.text);
    assert.deepEqual(created.body.warnings, told);
    const path = `${MACHINES}/${created.body.id}`;
    await ask(`GET ${path}/wait?state=settled`);
    assert.deepEqual((await ask(`POST ${path}`, { body: { config } })).body.warnings, told);
    await ask(`GET ${path}/wait?state=settled`);
    assert.equal((await ask(`POST ${path}`, { body: { config: { image: IMAGE } } })).body.warnings, undefined);
  });
}

test("config.sqlite on simulated machines warns that no node runs, and their log says it too", async (t) => {
  const { ask } = await testPlatform(t);
  await ask("POST /v1/apps", { body: { app_name: "web" } });
  const volume = (await ask("POST /v1/apps/web/volumes", { body: { name: "data", size_gb: 1 } })).body.id;
  const config = { image: IMAGE, mounts: [{ volume, path: "/data" }], sqlite: { dir: "/data" } };
  const created = await ask(`POST ${MACHINES}`, { body: { config } });
  assert.equal(created.status, 200, created.text);
  const why = "simulated machines run no program";
  assert.deepEqual(created.body.warnings, [
    `config.sqlite: no node runs in the machine, so its databases are not replicated: ${why}`,
  ]);
  const path = `${MACHINES}/${created.body.id}`;
  await ask(`GET ${path}/wait?state=started`);
  const { lines } = (await ask(`GET ${path}/logs`)).body as { lines: { message: string }[] };
  assert.ok(lines.some(({ message }) => message === "simulated: no SQLite node runs here, nothing is replicated"));
  const elsewhere = { ...config, sqlite: { dir: "/srv" } };
  const refused = await ask(`POST ${path}`, { body: { config: elsewhere } });
  assert.deepEqual([refused.status, refused.body.details[0].path], [400, "body.config.sqlite.dir"], refused.text);
});
