/** A program in a machine pushes metrics as the machine: without a secret, and with labels that it cannot choose. */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { compressSync } from "snappy";
import { systemClock } from "#core/clock.ts";
import { type Inside, inside, type Machine } from "./inside.ts";

const BASE = "/prometheus/personal/api/v1";
const FORGED = { app: "other", instance: "forged", host: "forged", region: "forged" };

interface Stored {
  metric: Record<string, string>;
  value: [number, string];
}

async function stored(platform: Inside, name: string): Promise<Stored[]> {
  const { body } = await platform.ask(`GET ${BASE}/query?query=${name}`);
  return body.data.result as Stored[];
}

async function own(platform: Inside, { id }: Machine): Promise<Record<string, string>> {
  const { body } = await platform.ask(`GET /v1/apps/web/machines/${id}`);
  return { app: "web", instance: body.instance_id, region: body.region };
}

/** What is pushed is stored with the machine's labels, whatever it said. */
async function isOwn(
  platform: Inside,
  machine: Machine,
  name: string,
  more: Record<string, string> = {},
): Promise<void> {
  const found = await stored(platform, name);
  assert.equal(found.length, 1, name);
  const { host, ...metric } = (found[0] as Stored).metric;
  const expected = await own(platform, machine);
  assert.deepEqual(metric, { __name__: name, ...expected, ...more });
  assert.ok(host !== undefined && host !== "forged", name);
}

const tokenFor = async (platform: Inside, machine: Machine, aud: string): Promise<string> =>
  (await platform.from(machine, "POST /v1/tokens/oidc", { body: JSON.stringify({ aud }), headers: JSON_TYPE })).text;
const JSON_TYPE = { "content-type": "application/json" };

async function withMachine(t: TestContext): Promise<{ platform: Inside; machine: Machine }> {
  const platform = await inside(t);
  return { platform, machine: await platform.machine("a") };
}

const pushed = (
  platform: Inside,
  token: string,
  path: string,
  body: string | Buffer,
  headers: Record<string, string> = {},
) =>
  fetch(`${platform.base_url}${path}`, {
    method: "POST",
    body,
    headers: { authorization: `Bearer ${token}`, ...headers },
  });

/** A remote write 1.0 body of one series with one sample, by hand. */
function remoteWrite(labels: Record<string, string>, value: number, timestamp: number): Buffer {
  const field = (number: number, bytes: Buffer): Buffer =>
    Buffer.concat([Buffer.from([number * 8 + 2, bytes.length]), bytes]);
  const double = Buffer.alloc(8);
  double.writeDoubleLE(value);
  const time: number[] = [];
  let left = BigInt(timestamp);
  for (; left > 127n; left >>= 7n) time.push(Number(left & 127n) | 128);
  const sample = Buffer.concat([Buffer.from([0x09]), double, Buffer.from([0x10, ...time, Number(left)])]);
  const spelled = Object.entries(labels).map(([name, text]) =>
    field(1, Buffer.concat([field(1, Buffer.from(name)), field(2, Buffer.from(text))])),
  );
  return compressSync(field(1, Buffer.concat([...spelled, field(2, sample)])));
}

suite("metrics pushed by a machine", () => {
  test("every format is accepted over the machine's socket, with the machine's own labels", async (t) => {
    const { platform, machine } = await withMachine(t);
    const now = systemClock.now();
    const text = `from_text{app="other",instance="forged",room="x"} 1\n`;
    assert.equal((await platform.from(machine, `POST ${BASE}/import/prometheus`, { body: text })).status, 204);
    await isOwn(platform, machine, "from_text", { room: "x" });

    const line = JSON.stringify({ metric: { __name__: "from_json", ...FORGED }, values: [2], timestamps: [now] });
    assert.equal((await platform.from(machine, `POST ${BASE}/import`, { body: line })).status, 204);
    await isOwn(platform, machine, "from_json");

    const body = remoteWrite({ __name__: "from_write", ...FORGED, room: "y" }, 3, now);
    const headers = { "content-encoding": "snappy", "content-type": "application/x-protobuf" };
    const written = await platform.from(machine, `POST ${BASE}/write`, { body, headers });
    assert.equal(written.status, 204, written.text);
    await isOwn(platform, machine, "from_write", { room: "y" });
    assert.equal((await stored(platform, "from_write"))[0]?.value[1], "3");

    const point = { timeUnixNano: `${now}000000`, asDouble: 4 };
    const attributes = [{ key: "instance", value: { stringValue: "forged" } }];
    const buckets = { count: "1", sum: 1, scale: 0, positive: { offset: 0, bucketCounts: ["1"] } };
    const native = { timeUnixNano: `${now}000000`, attributes, ...buckets };
    const otlp = {
      resourceMetrics: [
        {
          resource: { attributes: [{ key: "app", value: { stringValue: "other" } }] },
          scopeMetrics: [
            {
              metrics: [
                { name: "from_otlp", gauge: { dataPoints: [point] } },
                { name: "native", exponentialHistogram: { aggregationTemporality: 2, dataPoints: [native] } },
              ],
            },
          ],
        },
      ],
    };
    const path = "POST /prometheus/personal/opentelemetry/v1/metrics";
    const sent = await platform.from(machine, path, { body: JSON.stringify(otlp), headers: JSON_TYPE });
    assert.equal(sent.status, 200, sent.text);
    const [one] = await stored(platform, "from_otlp");
    assert.equal(one?.metric["app"], "web");
    const [histogram] = await stored(platform, "histogram_count(native)&dialect=promql");
    const { instance } = await own(platform, machine);
    assert.deepEqual([histogram?.metric["app"], histogram?.metric["instance"]], ["web", instance]);
  });

  test("an identity token for the audience of pushes is accepted by the platform's API", async (t) => {
    const { platform, machine } = await withMachine(t);
    const token = await tokenFor(platform, machine, `${platform.base_url}/prometheus`);
    const { status } = await pushed(platform, token, `${BASE}/import/prometheus`, `outside{app="other"} 1\n`);
    assert.equal(status, 204);
    await isOwn(platform, machine, "outside");
  });

  test("a machine may push to its own organization only, and may not read", async (t) => {
    const { platform, machine } = await withMachine(t);
    await platform.ask("POST /v1/orgs", { body: { name: "other" } });
    const token = await tokenFor(platform, machine, `${platform.base_url}/prometheus`);
    const other = "/prometheus/other/api/v1/import/prometheus";
    assert.equal((await pushed(platform, token, other, "a 1\n")).status, 404);
    assert.equal((await platform.from(machine, `POST ${other}`, { body: "a 1\n" })).status, 404);
    const headers = { authorization: `Bearer ${token}` };
    assert.equal((await fetch(`${platform.base_url}${BASE}/query?query=a`, { headers })).status, 401);
    assert.equal((await platform.from(machine, `GET ${BASE}/query?query=a`)).status, 401);
  });

  test("a token for another audience, of a stopped machine, or changed is refused", async (t) => {
    const { platform, machine } = await withMachine(t);
    const path = `${BASE}/import/prometheus`;
    for (const aud of ["sts.amazonaws.com", platform.base_url, `${platform.base_url}/v1/gateway`]) {
      const token = await tokenFor(platform, machine, aud);
      assert.equal((await pushed(platform, token, path, "a 1\n")).status, 401, aud);
    }
    const token = await tokenFor(platform, machine, `${platform.base_url}/prometheus`);
    const [head, claims = "", signature] = token.split(".");
    const changed = JSON.parse(Buffer.from(claims, "base64url").toString()) as Record<string, string>;
    changed["machine_id"] = "d8911111111111";
    const forged = Buffer.from(JSON.stringify(changed)).toString("base64url");
    assert.equal((await pushed(platform, `${head}.${forged}.${signature}`, path, "a 1\n")).status, 401);
    assert.equal((await pushed(platform, token, path, "a 1\n")).status, 204);
    await platform.ask(`POST /v1/apps/web/machines/${machine.id}/stop`);
    await platform.ask(`GET /v1/apps/web/machines/${machine.id}/wait?state=stopped`);
    assert.equal((await pushed(platform, token, path, "a 1\n")).status, 401);
  });
});
