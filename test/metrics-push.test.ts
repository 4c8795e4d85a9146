import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { gzipSync } from "node:zlib";
import { compressSync } from "snappy";
import { systemClock } from "#core/clock.ts";
import { type TestPlatform, testPlatform } from "./platform.ts";

const BASE = "/prometheus/personal";
/** What `inject` takes bytes as. */
const push = async (
  platform: TestPlatform,
  path: string,
  body: Uint8Array | string,
  headers: Record<string, string> = {},
) =>
  await fetch(`${platform.base_url}${BASE}${path}`, {
    method: "POST",
    body: Buffer.from(body as string),
    headers: { authorization: `Bearer ${platform.token}`, ...headers },
  });

const vector = async (platform: TestPlatform, query: string) =>
  (await platform.ask(`GET ${BASE}/api/v1/query?query=${encodeURIComponent(query)}`)).body.data.result.map(
    ({ metric, value }: { metric: Record<string, string>; value: [number, string] }) => [metric, value[1]],
  );

/** Protobuf, written by hand. */
function varint(value: number | bigint): Buffer {
  const bytes: number[] = [];
  for (let left = BigInt(value); ; left >>= 7n) {
    if (left < 128n) return Buffer.from([...bytes, Number(left)]);
    bytes.push(Number(left & 127n) | 128);
  }
}
const field = (number: number, bytes: Uint8Array | string): Buffer => {
  const content = Buffer.from(bytes as string);
  return Buffer.concat([varint(number * 8 + 2), varint(content.length), content]);
};
const whole = (number: number, value: number | bigint): Buffer => Buffer.concat([varint(number * 8), varint(value)]);
const eight = (number: number, write: (buffer: Buffer) => void): Buffer => {
  const buffer = Buffer.alloc(8);
  write(buffer);
  return Buffer.concat([varint(number * 8 + 1), buffer]);
};
const double = (number: number, value: number): Buffer => eight(number, (buffer) => buffer.writeDoubleLE(value));
const fixed = (number: number, value: bigint): Buffer => eight(number, (buffer) => buffer.writeBigUInt64LE(value));

suite("pushed metrics", () => {
  test("VictoriaMetrics' JSON lines are imported, exported as they came, and imported again", async (t) => {
    const platform = await testPlatform(t);
    const now = Math.floor(systemClock.now() / 1000) * 1000;
    const lines = [
      {
        metric: { __name__: "temp", room: 'a"b' },
        values: [1, 2.5, null],
        timestamps: [now - 3000, now - 2000, now - 1000],
      },
      {
        metric: { __name__: "temp", room: "c" },
        values: ["Infinity", "-Infinity"],
        timestamps: [now - 2000, now - 1000],
      },
    ];
    const text = lines.map((line) => `${JSON.stringify(line)}\n`).join("");
    assert.equal((await push(platform, "/api/v1/import", gzipSync(text), { "content-encoding": "gzip" })).status, 204);
    const exported = await platform.ask(`GET ${BASE}/api/v1/export?match[]=temp`);
    assert.deepEqual(exported.text.trim().split("\n").sort(), text.trim().split("\n").sort());
    const bad = await push(platform, "/api/v1/import", `${text}{"metric":{"a":"b"},"values":[1],"timestamps":[1]}`);
    assert.deepEqual([bad.status, /line 3: metric must be/.test(await bad.text())], [400, true]);
  });

  test("Prometheus text is imported, an invalid line is reported with its position", async (t) => {
    const platform = await testPlatform(t);
    const path = "/api/v1/import/prometheus";
    assert.equal((await push(platform, path, '# TYPE a counter\na{x="1"} 5\nb 7\n')).status, 204);
    assert.deepEqual(await vector(platform, '{__name__=~"a|b"}'), [
      [{ __name__: "a", x: "1" }, "5"],
      [{ __name__: "b" }, "7"],
    ]);
    const bad = await push(platform, path, "c 1\nd x\n");
    assert.equal(bad.status, 400);
    assert.match(await bad.text(), /not a number \(line 2\)/);
    assert.deepEqual(await vector(platform, "c"), [[{ __name__: "c" }, "1"]], "the other line is stored");
  });

  test("remote write 2.0 is stored and counted", async (t) => {
    const platform = await testPlatform(t);
    const now = systemClock.now();
    const symbols = ["", "__name__", "speed", "unit", "m/s"];
    const sample = (value: number, at: number): Buffer =>
      field(2, Buffer.concat([double(1, value), whole(2, BigInt(at))]));
    const refs = Buffer.concat([1, 2, 3, 4].map(varint));
    const series = field(5, Buffer.concat([field(1, refs), sample(3, now - 1000), sample(4, now)]));
    const body = Buffer.concat([...symbols.map((text) => field(4, text)), series]);
    const headers = {
      "content-type": "application/x-protobuf;proto=io.prometheus.write.v2.Request",
      "content-encoding": "snappy",
      "x-prometheus-remote-write-version": "2.0.0",
    };
    const answer = await push(platform, "/api/v1/write", compressSync(body), headers);
    assert.equal(answer.status, 204, await answer.text());
    assert.equal(answer.headers.get("x-prometheus-remote-write-samples-written"), "2");
    assert.deepEqual(await vector(platform, "speed"), [[{ __name__: "speed", unit: "m/s" }, "4"]]);
    const broken = await push(platform, "/api/v1/write", compressSync(body.subarray(0, body.length - 3)), headers);
    assert.equal(broken.status, 400);
    const unpacked = await push(platform, "/api/v1/write", body, headers);
    assert.equal(unpacked.status, 400, "it is not snappy");
  });

  test("native histograms of both versions of remote write are stored, and those that are none are refused", async (t) => {
    const platform = await testPlatform(t);
    const now = systemClock.now();
    const zigzag = (value: number): Buffer => varint(value < 0 ? -2 * value - 1 : 2 * value);
    const signed = (number: number, value: number): Buffer => Buffer.concat([varint(number * 8), zigzag(value)]);
    const span = Buffer.concat([signed(1, -1), whole(2, 3)]);
    const deltas = Buffer.concat([2, 1, -2].map(zigzag));
    const message = (schema: number, last: readonly Buffer[] = []): Buffer =>
      Buffer.concat([
        whole(1, 7n),
        double(3, 12.5),
        signed(4, schema),
        double(5, 0.001),
        whole(6, 1n),
        field(11, span),
        field(12, deltas),
        whole(15, BigInt(now)),
        ...last,
      ]);
    const label = (name: string, value: string): Buffer => field(1, Buffer.concat([field(1, name), field(2, value)]));
    const first = (name: string, histogram: Buffer): Buffer =>
      field(1, Buffer.concat([label("__name__", name), field(4, histogram)]));
    const v1 = { "content-type": "application/x-protobuf", "content-encoding": "snappy" };
    const answer = await push(platform, "/api/v1/write", compressSync(first("one", message(2))), v1);
    assert.equal(answer.status, 204, await answer.text());

    const symbols = ["", "__name__", "two"].map((text) => field(4, text));
    const second = (histogram: Buffer): Buffer =>
      Buffer.concat([...symbols, field(5, Buffer.concat([field(1, Buffer.from([1, 2])), field(3, histogram)]))]);
    const v2 = { ...v1, "content-type": "application/x-protobuf;proto=io.prometheus.write.v2.Request" };
    const custom = Buffer.concat([
      double(2, 6),
      double(3, 4),
      signed(4, -53),
      field(11, Buffer.concat([signed(1, 0), whole(2, 2)])),
      double(13, 2),
      double(13, 4),
      double(16, 1.5),
      whole(15, BigInt(now)),
      whole(17, BigInt(now - 5000)),
    ]);
    const stored = await push(platform, "/api/v1/write", compressSync(second(custom)), v2);
    assert.equal(stored.status, 204, await stored.text());
    assert.equal(stored.headers.get("x-prometheus-remote-write-histograms-written"), "1");
    const found = async (query: string): Promise<unknown> => {
      const path = `${BASE}/api/v1/query?dialect=promql&query=${encodeURIComponent(query)}`;
      return (await platform.ask(`GET ${path}`)).body.data.result[0]?.histogram?.[1];
    };
    const near = (exponent: number): string => String(2 ** exponent);
    assert.deepEqual(await found("one"), {
      count: "7",
      sum: "12.5",
      buckets: [
        [3, "-0.001", "0.001", "1"],
        [0, near(-0.5), near(-0.25), "2"],
        [0, near(-0.25), "1", "3"],
        [0, "1", near(0.25), "1"],
      ],
    });
    const bounded = [
      [3, "-Inf", "1.5", "2"],
      [0, "1.5", "+Inf", "4"],
    ];
    assert.deepEqual(await found("two"), { count: "6", sum: "4", buckets: bounded });
    for (const [body, headers] of [
      [first("bad", message(77)), v1],
      [second(message(2, [double(16, 1)])), v2],
    ] as const) {
      const refused = await push(platform, "/api/v1/write", compressSync(body), headers);
      assert.equal(refused.status, 400);
      assert.match(await refused.text(), /a native histogram cannot be stored: /);
    }
  });

  test("exponential histograms of OTLP become native ones, the same from JSON and from protobuf", async (t) => {
    const platform = await testPlatform(t);
    const nanos = BigInt(systemClock.now()) * 1_000_000n;
    const buckets = { offset: -2, bucketCounts: ["1", "0", "3"] };
    const point = { timeUnixNano: String(nanos), count: "7", sum: 6.5, scale: 9, zeroCount: "1", positive: buckets };
    const metric = (name: string, temporality: number, more: object = {}) => ({
      name,
      exponentialHistogram: {
        dataPoints: [{ ...point, negative: { offset: 1023, bucketCounts: ["2"] }, ...more }],
        aggregationTemporality: temporality,
      },
    });
    const metrics = [metric("json", 2), metric("delta", 1), metric("coarse", 2, { scale: -5 })];
    const answer = await push(
      platform,
      "/opentelemetry/v1/metrics",
      JSON.stringify({ resourceMetrics: [{ scopeMetrics: [{ metrics }] }] }),
      { "content-type": "application/json" },
    );
    const { partialSuccess } = (await answer.json()) as { partialSuccess: Record<string, string> };
    assert.equal(partialSuccess["rejectedDataPoints"], "2");
    assert.match(partialSuccess["errorMessage"] ?? "", /delta, coarse/);

    const signed = (number: number, value: number): Buffer => whole(number, value < 0 ? -2 * value - 1 : 2 * value);
    const counts = (list: number[]): Buffer => field(2, Buffer.concat(list.map(varint)));
    const data = Buffer.concat([
      fixed(3, nanos),
      fixed(4, 7n),
      double(5, 6.5),
      signed(6, 9),
      fixed(7, 1n),
      field(8, Buffer.concat([signed(1, -2), counts([1, 0, 3])])),
      field(9, Buffer.concat([signed(1, 1023), counts([2])])),
    ]);
    const wire = field(2, Buffer.concat([field(1, "wire"), field(10, Buffer.concat([field(1, data), whole(2, 2)]))]));
    const body = field(1, field(2, wire));
    const type = { "content-type": "application/x-protobuf" };
    assert.equal((await push(platform, "/api/v1/otlp/v1/metrics", body, type)).status, 200);
    const found = async (query: string): Promise<unknown> => {
      const { body: reply } = await platform.ask(`GET ${BASE}/api/v1/query?dialect=promql&query=${query}`);
      return reply.data.result[0]?.histogram?.[1];
    };
    // Of scale 9 two buckets are one: those before 1 hold the first two, the one behind it the third.
    const bound = (index: number): string => String(2 ** Math.floor(index / 256) * 2 ** ((index % 256) / 256));
    const expected = {
      count: "7",
      sum: "6.5",
      buckets: [
        [1, `-${bound(512)}`, `-${bound(511)}`, "2"],
        [3, "-1e-128", "1e-128", "1"],
        [0, String(2 ** -1 * 2 ** (255 / 256)), "1", "1"],
        [0, "1", bound(1), "3"],
      ],
    };
    assert.deepEqual(await found("json"), expected);
    assert.deepEqual(await found("wire"), expected);
  });

  test("OTLP in JSON and in protobuf gives the same series, named as Prometheus names them", async (t) => {
    const platform = await testPlatform(t);
    const nanos = BigInt(systemClock.now()) * 1_000_000n;
    const attributes = (pairs: Record<string, string>) =>
      Object.entries(pairs).map(([key, stringValue]) => ({ key, value: { stringValue } }));
    const number = { timeUnixNano: String(nanos), attributes: attributes({ "http.route": "/" }) };
    const histogram = {
      timeUnixNano: String(nanos),
      count: "3",
      sum: 4.5,
      bucketCounts: ["1", "2", "0"],
      explicitBounds: [1, 2.5],
    };
    const metrics = (suffix: string) => [
      {
        name: `requests${suffix}`,
        sum: { dataPoints: [{ ...number, asInt: "7" }], aggregationTemporality: 2, isMonotonic: true },
      },
      { name: `latency${suffix}`, unit: "ms", histogram: { dataPoints: [histogram], aggregationTemporality: 2 } },
      { name: `memory.used${suffix}`, unit: "By", gauge: { dataPoints: [{ ...number, asDouble: 1.5 }] } },
      {
        name: "deltas",
        sum: { dataPoints: [{ ...number, asInt: "1" }], aggregationTemporality: 1, isMonotonic: true },
      },
    ];
    const resource = {
      attributes: attributes({ "service.name": "shop", "service.instance.id": "i1", "os.type": "linux" }),
    };
    const json = { resourceMetrics: [{ resource, scopeMetrics: [{ metrics: metrics("") }] }] };
    const answer = await push(platform, "/opentelemetry/v1/metrics", JSON.stringify(json), {
      "content-type": "application/json",
    });
    assert.equal(answer.status, 200);
    const { partialSuccess } = (await answer.json()) as { partialSuccess: Record<string, string> };
    assert.deepEqual(
      [partialSuccess["rejectedDataPoints"], /deltas/.test(partialSuccess["errorMessage"] ?? "")],
      ["1", true],
    );
    const own = { job: "shop", instance: "i1" };
    const route = { ...own, http_route: "/" };
    const expected = (suffix: string) => [
      [{ __name__: `latency${suffix}_milliseconds_bucket`, ...own, le: "+Inf" }, "3"],
      [{ __name__: `latency${suffix}_milliseconds_bucket`, ...own, le: "1" }, "1"],
      [{ __name__: `latency${suffix}_milliseconds_bucket`, ...own, le: "2.5" }, "3"],
      [{ __name__: `latency${suffix}_milliseconds_count`, ...own }, "3"],
      [{ __name__: `latency${suffix}_milliseconds_sum`, ...own }, "4.5"],
      [{ __name__: `memory_used${suffix}_bytes`, ...route }, "1.5"],
      [{ __name__: `requests${suffix}_total`, ...route }, "7"],
    ];
    const textOf = ([labels, value]: [Record<string, string>, string]): string =>
      `${Object.entries(labels)
        .map(([name, text]) => `${name}=${text}`)
        .sort()
        .join(",")} ${value}`;
    const sorted = (list: unknown[]): string[] => (list as [Record<string, string>, string][]).map(textOf).sort();
    const found = await vector(platform, '{__name__=~"latency.*|memory.*|requests.*"}');
    assert.deepEqual(sorted(found), sorted(expected("")));
    assert.deepEqual(await vector(platform, "target_info"), [
      [{ __name__: "target_info", ...own, os_type: "linux", service_instance_id: "i1", service_name: "shop" }, "1"],
    ]);

    const keyValue = ([key, text]: [string, string]): Buffer =>
      Buffer.concat([field(1, key), field(2, field(1, text))]);
    const route_attribute = field(7, keyValue(["http.route", "/"]));
    const asInt = eight(6, (buffer) => buffer.writeBigInt64LE(7n));
    const sum = Buffer.concat([
      field(1, Buffer.concat([fixed(3, nanos), asInt, route_attribute])),
      whole(2, 2),
      whole(3, 1),
    ]);
    const gauge = field(1, Buffer.concat([fixed(3, nanos), double(4, 1.5), route_attribute]));
    const longs = Buffer.concat(
      [1n, 2n, 0n].map((one) => {
        const buffer = Buffer.alloc(8);
        buffer.writeBigUInt64LE(one);
        return buffer;
      }),
    );
    const bounds = Buffer.concat(
      [1, 2.5].map((one) => {
        const buffer = Buffer.alloc(8);
        buffer.writeDoubleLE(one);
        return buffer;
      }),
    );
    const buckets = Buffer.concat([fixed(3, nanos), fixed(4, 3n), double(5, 4.5), field(6, longs), field(7, bounds)]);
    const list = [
      Buffer.concat([field(1, "requests_b"), field(7, sum)]),
      Buffer.concat([field(1, "latency_b"), field(3, "ms"), field(9, Buffer.concat([field(1, buckets), whole(2, 2)]))]),
      Buffer.concat([field(1, "memory.used_b"), field(3, "By"), field(5, gauge)]),
    ];
    const scope = field(2, Buffer.concat(list.map((one) => field(2, one))));
    const about = field(
      1,
      Buffer.concat(
        (
          [
            ["service.name", "shop"],
            ["service.instance.id", "i1"],
          ] as [string, string][]
        ).map((pair) => field(1, keyValue(pair))),
      ),
    );
    const wire = field(1, Buffer.concat([about, scope]));
    const second = await push(platform, "/api/v1/otlp/v1/metrics", gzipSync(wire), {
      "content-type": "application/x-protobuf",
      "content-encoding": "gzip",
    });
    assert.equal(second.status, 200, await second.text());
    assert.deepEqual(sorted(await vector(platform, '{__name__=~".*_b_.*"}')), sorted(expected("_b")));
    const broken = await push(platform, "/opentelemetry/v1/metrics", wire.subarray(0, 50), {
      "content-type": "application/x-protobuf",
    });
    assert.equal(broken.status, 400);
  });

  test("a push needs the right to write to the organization, and is bounded", async (t) => {
    const platform = await testPlatform(t);
    await platform.ask("POST /v1/orgs", { body: { name: "other" } });
    const token = async (org: string, kind: string): Promise<string> =>
      (await platform.ask(`POST /v1/orgs/${org}/tokens`, { body: { kind } })).body.token;
    const status = async (text: string): Promise<number> =>
      (await push(platform, "/api/v1/import/prometheus", "a 1\n", { authorization: `Bearer ${text}` })).status;
    assert.equal(await status(await token("personal", "org")), 204);
    assert.equal(await status(await token("personal", "readonly")), 403);
    assert.equal(await status(await token("other", "org")), 404);
    assert.equal(await status("nonsense"), 401);
    const bomb = gzipSync(Buffer.alloc(17 * 1024 * 1024, "a 1\n"));
    const refused = await push(platform, "/api/v1/import/prometheus", bomb, { "content-encoding": "gzip" });
    assert.deepEqual([refused.status, /push_bytes/.test(await refused.text())], [413, true]);
    const odd = await push(platform, "/api/v1/import", "{}", { "content-encoding": "br" });
    assert.equal(odd.status, 415);
    const many = Array.from({ length: 50_010 }, (_, n) =>
      JSON.stringify({ metric: { __name__: "many", n: String(n) }, values: [1], timestamps: [systemClock.now()] }),
    ).join("\n");
    const over = await push(platform, "/api/v1/import", many);
    assert.deepEqual([over.status, /49999 samples were stored, 11 were not/.test(await over.text())], [400, true]);
    const far = await push(platform, "/api/v1/import/prometheus?timestamp=1000", "old 1\n");
    assert.deepEqual([far.status, /1 were not/.test(await far.text())], [400, true]);
  });

  test("the status endpoints of Prometheus are answered in its format", async (t) => {
    const platform = await testPlatform(t);
    await push(platform, "/api/v1/import/prometheus", "# TYPE a counter\na 1\n");
    const data = async (path: string): Promise<unknown> => {
      const { status, body } = await platform.ask(`GET ${BASE}/api/v1/${path}`);
      assert.deepEqual([status, body.status], [200, "success"], path);
      return body.data;
    };
    assert.deepEqual(await data("status/config"), { yaml: "" });
    assert.deepEqual(await data("status/flags"), {});
    assert.match(JSON.stringify(await data("status/runtimeinfo")), /"storageRetention":"15d"/);
    assert.deepEqual(await data("alertmanagers"), { activeAlertmanagers: [], droppedAlertmanagers: [] });
    assert.deepEqual(await data("targets/metadata?metric=a"), [], "nothing is scraped");
  });
});
