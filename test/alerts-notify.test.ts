import assert from "node:assert/strict";
import { createServer } from "node:http";
import { text } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { labelsOf } from "#metrics/tsdb/fixtures.ts";
import { seriesBatch } from "#metrics/tsdb/ingest/series-batch.ts";
import { type TestPlatform, testPlatform } from "./platform.ts";
import { until } from "./support.ts";

// biome-ignore lint/suspicious/noExplicitAny: tests look into bodies of every shape.
type Body = any;
const ALERTS = "/v1/orgs/personal/alerts";

interface Sink {
  url: string;
  host: string;
  bodies: { path: string; body: Body }[];
  status: number;
}

/** A server that keeps what it is sent. */
async function sink(t: TestContext): Promise<Sink> {
  const found: Sink = { url: "", host: "", bodies: [], status: 200 };
  const server = createServer((request, response) => {
    void text(request).then((body) => {
      if (found.status === 200) found.bodies.push({ path: request.url ?? "", body: JSON.parse(body) });
      response.writeHead(found.status).end("{}");
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => server.close());
  found.host = `127.0.0.1:${(server.address() as { port: number }).port}`;
  found.url = `http://${found.host}`;
  return found;
}

async function write(platform: TestPlatform, labels: Record<string, string>, value: number, slug = "personal") {
  const org = (await platform.ask(`GET /v1/orgs/${slug}`)).body.id;
  const sample = { labels: labelsOf({ __name__: "errors", ...labels }), timestamp: systemClock.now(), value };
  await platform.metrics().append(org, seriesBatch([sample]));
}

const RULES = JSON.stringify({
  groups: [
    {
      name: "fast",
      interval: "1s",
      rules: [
        {
          alert: "Errors",
          expr: "errors > 5",
          labels: { severity: "page" },
          annotations: { summary: "{{ $labels.app }} fails" },
        },
      ],
    },
  ],
});

const config = (url: string, more: object = {}): string =>
  JSON.stringify({
    route: { receiver: "all", group_by: ["alertname"], group_wait: "0s", group_interval: "1s", repeat_interval: "1h" },
    receivers: [
      {
        name: "all",
        webhook_configs: [{ url: `${url}/hook`, token: "s3cret" }],
        slack_configs: [{ api_url: `${url}/slack`, channel: "#ops" }],
        ntfy_configs: [{ url: `${url}/topic`, priority: 4 }],
      },
    ],
    ...more,
  });

async function apply(platform: TestPlatform, content: string, alerts = ALERTS): Promise<void> {
  const put = await platform.ask(`PUT ${alerts}/receivers`, { body: { content } });
  assert.equal(put.status, 200, put.text);
  assert.equal((await platform.ask(`PUT ${alerts}/rules/fast`, { body: { content: RULES } })).status, 200);
}

const at = (to: Sink, path: string) => to.bodies.filter((one) => one.path === path).map(({ body }) => body);

suite("notifications", () => {
  test("a group of alerts reaches a webhook, Slack and ntfy once, and its end those that want it", async (t) => {
    const to = await sink(t);
    const platform = await testPlatform(t);
    for (const app of ["web", "api"]) await write(platform, { app }, 9);
    await apply(platform, config(to.url));
    const [first] = await until("the webhook is told", () => at(to, "/hook").length > 0 && at(to, "/hook"));
    assert.deepEqual(
      [first.version, first.status, first.receiver, first.groupLabels, first.commonLabels, first.alerts.length],
      ["4", "firing", "all", { alertname: "Errors" }, { alertname: "Errors", severity: "page" }, 2],
    );
    assert.deepEqual(first.alerts.map(({ annotations }: Body) => annotations.summary).sort(), [
      "api fails",
      "web fails",
    ]);
    const [slack] = await until("Slack is told", () => at(to, "/slack").length > 0 && at(to, "/slack"));
    assert.deepEqual(
      [slack.channel, slack.attachments[0].title, slack.attachments[0].color],
      ["#ops", "[FIRING:2] Errors", "danger"],
    );
    const [ntfy] = await until("ntfy is told", () => at(to, "/").length > 0 && at(to, "/"));
    assert.deepEqual([ntfy.topic, ntfy.title, ntfy.priority], ["topic", "[FIRING:2] Errors", 4]);
    for (const app of ["web", "api"]) await write(platform, { app }, 1);
    const hooks = await until("the end is told", () => {
      const all = at(to, "/hook");
      return all.some(({ status }) => status === "resolved") && all;
    });
    assert.equal(hooks.filter(({ status }) => status === "firing").length <= 2, true, "nothing is repeated");
    await until("the end reaches ntfy", () => at(to, "/").some(({ title }) => title.startsWith("[RESOLVED]")));
    assert.equal(at(to, "/slack").length, 1, "Slack wants no ends");
    await until("every message is delivered", async () => {
      const list = (await platform.ask(`GET ${ALERTS}/notifications`)).body.notifications;
      return list.length >= 5 && list.every(({ state }: Body) => state === "delivered");
    });
    const shown = (await platform.ask(`GET ${ALERTS}/receivers`)).text;
    assert.ok(!/s3cret|\/slack|\/hook|\/topic/.test(shown), `secrets are masked: ${shown}`);
  });

  test("a message that was not delivered is delivered after a restart", async (t) => {
    const to = await sink(t);
    to.status = 503;
    const platform = await testPlatform(t);
    await write(platform, { app: "web" }, 9);
    await apply(platform, config(to.url));
    await until("it is tried", async () => {
      const list = (await platform.ask(`GET ${ALERTS}/notifications`)).body.notifications;
      return (
        list.length === 3 && list.every(({ attempts, last_error }: Body) => attempts > 0 && /503/.test(last_error))
      );
    });
    await platform.close();
    to.status = 200;
    const again = await testPlatform(t, { HANGAR_DATA_DIR: platform.data_dir });
    await until(
      "it arrives",
      () => at(to, "/hook").length > 0 && at(to, "/slack").length > 0 && at(to, "/").length > 0,
    );
    assert.equal(at(to, "/hook").length, 1);
    assert.equal((await again.ask(`GET ${ALERTS}/notifications`)).body.notifications.length, 3);
  });

  test("a silence keeps receivers quiet until it ends", async (t) => {
    const to = await sink(t);
    const platform = await testPlatform(t);
    const body = { matchers: ['app=~"we."', "severity=page"], duration: "1h", comment: "deploy" };
    const silence = (await platform.ask(`POST ${ALERTS}/silences`, { body })).body;
    assert.deepEqual(silence.matchers, ['app=~"we."', 'severity="page"']);
    for (const app of ["web", "api"]) await write(platform, { app }, 9);
    await apply(platform, config(to.url));
    const [first] = await until("the other alert is told", () => at(to, "/hook").length > 0 && at(to, "/hook"));
    assert.deepEqual(
      first.alerts.map(({ labels }: Body) => labels.app),
      ["api"],
    );
    const alerts = (await platform.ask(`GET ${ALERTS}`)).body.alerts;
    assert.deepEqual(
      alerts.map(({ labels, silenced_by }: Body) => [labels.app, silenced_by]),
      [
        ["api", []],
        ["web", [silence.id]],
      ],
    );
    assert.equal((await platform.ask(`DELETE ${ALERTS}/silences/${silence.id}`)).status, 204);
    await until("the silenced alert is told", () => at(to, "/hook").some(({ alerts: all }) => all.length === 2));
    assert.deepEqual((await platform.ask(`GET ${ALERTS}/silences`)).body.silences, []);
    const wrong = await platform.ask(`POST ${ALERTS}/silences`, { body: { ...body, matchers: ["app~web"] } });
    assert.equal(wrong.status, 400);
  });

  test("receivers of one organization that do not answer keep no other organization waiting", async (t) => {
    const [to, silent] = [await sink(t), createServer()];
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    t.after(() => silent.close().closeAllConnections());
    let asked = 0;
    silent.on("request", () => asked++);
    const platform = await testPlatform(t);
    const { port } = silent.address() as { port: number };
    // One after the other they would take longer than anybody waits here.
    const webhook_configs = Array.from({ length: 100 }, (_, i) => ({ url: `http://127.0.0.1:${port}/${i}` }));
    const slow = JSON.parse(config(to.url)) as { receivers: object[] };
    slow.receivers = [{ name: "all", webhook_configs }];
    await write(platform, { app: "web" }, 9);
    await apply(platform, JSON.stringify(slow));
    await until("the first one is asked", () => asked > 0);
    await platform.ask("POST /v1/orgs", { body: { slug: "globex", name: "Globex" } });
    await write(platform, { app: "shop" }, 9, "globex");
    await apply(platform, config(to.url), "/v1/orgs/globex/alerts");
    await until("the other organization is told", () => at(to, "/hook").length > 0);
  });

  test("an organization's token sends to public addresses only, unless the setting allows another", async (t) => {
    const to = await sink(t);
    const platform = await testPlatform(t);
    const { token } = (await platform.ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } })).body;
    const put = await platform.ask(`PUT ${ALERTS}/receivers`, { body: { content: config(to.url) }, token });
    assert.equal(put.status, 200, put.text);
    const tried = await platform.ask(`POST ${ALERTS}/receivers/all/test`, { token });
    for (const { problem } of tried.body.results)
      assert.match(problem, /not a public address.*HANGAR_WEBHOOK_ALLOW_PRIVATE/);
    const byOperator = await platform.ask(`POST ${ALERTS}/receivers/all/test`);
    for (const { problem } of byOperator.body.results)
      assert.match(
        problem,
        /not a public address/,
        "an operator who tries it does not open addresses that others chose",
      );
    assert.deepEqual(to.bodies, []);
    const allowed = await testPlatform(t, { HANGAR_WEBHOOK_ALLOW_PRIVATE: to.host });
    const own = (await allowed.ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } })).body.token;
    await allowed.ask(`PUT ${ALERTS}/receivers`, { body: { content: config(to.url) }, token: own });
    const sent = await allowed.ask(`POST ${ALERTS}/receivers/all/test`, { token: own });
    assert.deepEqual(
      sent.body.results.map(({ problem }: Body) => problem),
      [null, null, null],
    );
    assert.equal(to.bodies.length, 3);
  });

  test("receivers that cannot be used are refused with every problem and its line", async (t) => {
    const platform = await testPlatform(t);
    const content = `route:
  receiver: nobody
  routes:
    - matchers: ["severity"]
      receiver: mail
receivers:
  - name: mail
    email_configs:
      - to: not an address
        from: a@example.com
        smarthost: example.com
    pagerduty_configs: []
`;
    const { status, body } = await platform.ask(`PUT ${ALERTS}/receivers`, { body: { content } });
    assert.equal(status, 400);
    const problems = body.details.map(({ problem }: Body) => problem).join("\n");
    for (const part of [
      'no receiver "nobody"',
      "line 4",
      "no e-mail address",
      "smarthost is host:port",
      "field pagerduty_configs",
    ])
      assert.ok(problems.includes(part), `${part} in ${problems}`);
  });
});
