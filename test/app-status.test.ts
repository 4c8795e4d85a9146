/** One state for an app, as the API and `hangar status` show it, with machines of the simulated driver. */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { freePort } from "#proxy/fixtures.ts";
import { type TestPlatform, testPlatform } from "./platform.ts";
import { until } from "./support.ts";

async function start(t: TestContext) {
  const platform = await testPlatform(t);
  const app = async (name: string, config: object): Promise<string> => {
    await platform.ask("POST /v1/apps", { body: { app_name: name } });
    const body = { name: "first", config: { image: "registry.example/web:1", ...config } };
    const { id } = (await platform.ask(`POST /v1/apps/${name}/machines`, { body })).body;
    await platform.ask(`GET /v1/apps/${name}/machines/${id}/wait?state=started`);
    return id;
  };
  return { platform, app };
}

const statusOf = async (platform: TestPlatform, name: string) =>
  (await platform.ask(`GET /v1/apps/${name}/status`)).body;

const CHECKS = { alive: { type: "tcp", port: 80, interval: "1s" } };

suite("status of an app", () => {
  test("a failing check makes an app down although its machine is started, and the reason names the check", async (t) => {
    const { platform, app } = await start(t);
    await app("sick", { checks: CHECKS, env: { SIM_CHECK: "refused" } });
    const status = await until("the check failed", async () => {
      const body = await statusOf(platform, "sick");
      return body.state === "down" && body;
    });
    assert.deepEqual(status.machines, { started: 1 });
    assert.match(status.reason, /^1 of 1 machine fails: first: check alive is critical: /);
    assert.equal(status.failures[0].machine_name, "first");
  });

  test("the list has every app with its state and URL, in pages", async (t) => {
    const { platform, app } = await start(t);
    const port = await freePort();
    const services = [{ protocol: "tcp", internal_port: 80, autostart: true, ports: [{ port, handlers: ["http"] }] }];
    const id = await app("asleep", { services });
    await platform.ask("POST /v1/apps/asleep/ip_assignments", { body: { type: "shared_v4" } });
    await platform.ask(`POST /v1/apps/asleep/machines/${id}/suspend`);
    await platform.ask(`GET /v1/apps/asleep/machines/${id}/wait?state=suspended`);
    await platform.ask("POST /v1/apps", { body: { app_name: "bare" } });
    await app("well", {});
    const list = "GET /v1/orgs/personal/app_statuses";
    const { apps } = (await platform.ask(list)).body;
    assert.deepEqual(
      apps.map(({ app_name, state, urls }: Record<string, unknown>) => [app_name, state, urls]),
      [
        ["asleep", "asleep", [`http://asleep.localhost:${port}`]],
        ["bare", "empty", []],
        ["well", "healthy", []],
      ],
    );
    const first = (await platform.ask(`${list}?limit=2`)).body;
    const second = (await platform.ask(`${list}?limit=2&cursor=${first.next_cursor}`)).body;
    const names = [...first.apps, ...second.apps].map(({ app_name }: { app_name: string }) => app_name);
    assert.deepEqual(names, ["asleep", "bare", "well"]);
  });

  test("the status names the release that runs, and the newest one when that failed", async (t) => {
    const { platform } = await start(t);
    await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
    const image_digest = `sha256:${"a".repeat(64)}`;
    for (const [version, status] of [
      [1, "complete"],
      [2, "failed"],
    ] as const) {
      await platform.ask("POST /v1/apps/web/releases", {
        body: { definition: {}, image: `web:${version}`, image_digest },
      });
      const put = await platform.ask(`POST /v1/apps/web/releases/${version}`, { body: { status } });
      assert.equal(put.status, 200, put.text);
    }
    const { release, last_release } = await statusOf(platform, "web");
    assert.deepEqual([release.version, release.image, release.image_digest], [1, "web:1", image_digest]);
    assert.deepEqual([last_release.version, last_release.status], [2, "failed"]);
  });
});
