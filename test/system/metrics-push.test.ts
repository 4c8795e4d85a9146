/** Foreign senders: Debian's Prometheus and vmagent push what they scrape; every sample they kept is here. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, writeFileSync } from "node:fs";
import { createServer } from "node:http";
import { join } from "node:path";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { freePort } from "#proxy/fixtures.ts";
import { startProgram } from "../foreign-program.ts";
import { inside } from "../inside.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { tempDir, until } from "../support.ts";

interface Series {
  metric: Record<string, string>;
  values: [number, string][];
}

async function orgToken(platform: TestPlatform): Promise<string> {
  return (await platform.ask("POST /v1/orgs/personal/tokens", { body: { kind: "org" } })).body.token as string;
}

const key = ({ metric }: Series): string =>
  Object.entries(metric)
    .map(([name, value]) => `${name}=${value}`)
    .sort()
    .join(",");

suite("pushes of foreign senders", () => {
  test("Prometheus: every sample that it scraped from itself is here", {
    skip: !existsSync("/usr/bin/prometheus") && "needs prometheus",
  }, async (t) => {
    const platform = await testPlatform(t);
    const dir = tempDir();
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const write = `${platform.base_url}/prometheus/personal/api/v1/write`;
    writeFileSync(
      join(dir, "p.yml"),
      `global: {scrape_interval: 1s}
scrape_configs: [{job_name: self, static_configs: [{targets: ["127.0.0.1:${port}"]}]}]
remote_write: [{url: "${write}", authorization: {credentials: "${await orgToken(platform)}"}, queue_config: {batch_send_deadline: 1s}}]
`,
    );
    startProgram(t, "/usr/bin/prometheus", [
      `--config.file=${dir}/p.yml`,
      `--storage.tsdb.path=${dir}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
    ]);
    const ask = async (
      base: string,
      query: string,
      time: number,
      headers: Record<string, string> = {},
    ): Promise<Series[]> => {
      const answer = await fetch(`${base}/api/v1/query?time=${time}&query=${encodeURIComponent(query)}`, {
        headers,
      }).catch(() => undefined);
      if (!answer?.ok) return [];
      return ((await answer.json()) as { data: { result: Series[] } }).data.result;
    };
    await until(
      "Prometheus has scraped itself five times",
      async () => {
        const [up] = await ask(url, "up[1m]", systemClock.now() / 1000);
        return (up?.values.length ?? 0) >= 5;
      },
      { every_ms: 500 },
    );
    const time = Math.floor(systemClock.now() / 1000) - 1;
    const theirs = await ask(url, '{job="self"}[1m]', time);
    const samples = theirs.reduce((sum, { values }) => sum + values.length, 0);
    assert.ok(samples > 1000, `${samples} samples`);
    const headers = { authorization: `Bearer ${platform.token}` };
    const ours = await until(
      "all of them have arrived",
      async () => {
        const found = await ask(`${platform.base_url}/prometheus/personal`, '{job="self"}[1m]', time, headers);
        return found.reduce((sum, { values }) => sum + values.length, 0) >= samples && found;
      },
      { every_ms: 500 },
    );
    const byKey = new Map(ours.map((one) => [key(one), one.values]));
    for (const one of theirs) assert.deepEqual(byKey.get(key(one)), one.values, key(one));
    t.diagnostic(`${theirs.length} series, ${samples} samples, all the same`);
  });

  test("vmagent: what it scrapes is here", {
    skip: !existsSync("/usr/bin/vmagent") && "needs victoria-metrics",
  }, async (t) => {
    const platform = await testPlatform(t);
    const dir = tempDir();
    const target = createServer((_, response) => {
      response.end(Array.from({ length: 500 }, (_unused, at) => `pushed{n="${at}"} ${at}\n`).join(""));
    }).listen(0, "127.0.0.1");
    await once(target, "listening");
    t.after(() => target.close());
    const { port } = target.address() as { port: number };
    writeFileSync(
      join(dir, "v.yml"),
      `scrape_configs: [{job_name: own, scrape_interval: 1s, static_configs: [{targets: ["127.0.0.1:${port}"]}]}]\n`,
    );
    startProgram(t, "/usr/bin/vmagent", [
      `-promscrape.config=${dir}/v.yml`,
      `-remoteWrite.url=${platform.base_url}/prometheus/personal/api/v1/write`,
      `-remoteWrite.bearerToken=${await orgToken(platform)}`,
      `-remoteWrite.tmpDataPath=${dir}/queue`,
      "-httpListenAddr=127.0.0.1:0",
      "-remoteWrite.flushInterval=1s",
    ]);
    const query = encodeURIComponent('sum(pushed{job="own"}) + count(pushed) * 1000000');
    await until(
      "all series have arrived",
      async () => {
        const { body } = await platform.ask(`GET /prometheus/personal/api/v1/query?query=${query}`);
        return body.data.result[0]?.value[1] === String((500 * 499) / 2 + 500_000_000);
      },
      { every_ms: 500 },
    );
  });

  test("vmagent: with a machine's identity token in a file, its samples are the machine's", {
    skip: !existsSync("/usr/bin/vmagent") && "needs victoria-metrics",
  }, async (t) => {
    const platform = await inside(t);
    const machine = await platform.machine("agent");
    const dir = tempDir();
    const target = createServer((_, response) => {
      response.end('own{app="forged",n="1"} 5\n');
    }).listen(0, "127.0.0.1");
    await once(target, "listening");
    t.after(() => target.close());
    const { port } = target.address() as { port: number };
    writeFileSync(
      join(dir, "v.yml"),
      `scrape_configs: [{job_name: own, scrape_interval: 1s, honor_labels: true, static_configs: [{targets: ["127.0.0.1:${port}"]}]}]\n`,
    );
    const { text } = await platform.from(machine, "POST /v1/tokens/oidc", {
      body: JSON.stringify({ aud: `${platform.base_url}/prometheus` }),
      headers: { "content-type": "application/json" },
    });
    writeFileSync(join(dir, "token"), text);
    startProgram(t, "/usr/bin/vmagent", [
      `-promscrape.config=${dir}/v.yml`,
      `-remoteWrite.url=${platform.base_url}/prometheus/personal/api/v1/write`,
      `-remoteWrite.bearerTokenFile=${dir}/token`,
      `-remoteWrite.tmpDataPath=${dir}/queue`,
      "-httpListenAddr=127.0.0.1:0",
      "-remoteWrite.flushInterval=1s",
    ]);
    const found = await until(
      "its samples have arrived",
      async () => {
        const { body } = await platform.ask("GET /prometheus/personal/api/v1/query?query=own");
        return body.data.result.length > 0 && body.data.result;
      },
      { every_ms: 500 },
    );
    const { instance_id } = (await platform.ask(`GET /v1/apps/web/machines/${machine.id}`)).body;
    const labels = found.map(({ metric }: { metric: Record<string, string> }) => [metric["app"], metric["instance"]]);
    assert.deepEqual(labels, [["web", instance_id]]);
  });
});
