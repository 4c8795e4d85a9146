/** Built-in series of a platform with the sim driver: all of them are there, with their labels, on the grid. */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { VirtualClock } from "#core/fixtures.ts";
import { EXIT_SERIES, INSTANCE_SERIES, POSTGRES_SERIES, PROXY_SERIES, VOLUME_SERIES } from "./builtin-series.ts";
import { bench, IMAGE } from "./machine-bench.ts";
import { aVolume, clockHere, rounds } from "./measured.ts";
import type { TestPlatform } from "./platform.ts";
import { until } from "./support.ts";

const BASE = "/prometheus/personal/api/v1";

interface Shown {
  metric: Record<string, string>;
  value: [number, string];
}

async function query(platform: TestPlatform, clock: VirtualClock, text: string): Promise<Shown[]> {
  const answer = await platform.ask(`GET ${BASE}/query?query=${encodeURIComponent(text)}&time=${clock.now() / 1000}`);
  return answer.body.data.result;
}

suite("built-in metrics", () => {
  test("every series of the specification exists by name, with the standard labels", async (t) => {
    const clock = clockHere();
    const platform = await bench(t, {}, { clock });
    const { create, on } = platform;
    const volume = await aVolume(platform);
    const config = {
      image: IMAGE,
      services: [{ protocol: "tcp", internal_port: 8080 }],
      mounts: [{ volume, path: "/data" }],
      guest: { cpus: 2, memory_mb: 512 },
      metadata: { hangar_postgres_port: "5432" },
    };
    const { id } = (await create({ region: "local", config })).body;
    await until("its state", async () => (await on(`GET ${id}`)).body.state === "started");
    await rounds(platform, clock, 4);
    const { instance_id } = (await on(`GET ${id}`)).body;
    const names = (await platform.ask(`GET ${BASE}/label/__name__/values`)).body.data as string[];
    assert.deepEqual(
      [...INSTANCE_SERIES, ...PROXY_SERIES, ...VOLUME_SERIES, ...POSTGRES_SERIES].filter(
        (name) => !names.includes(name),
      ),
      [],
    );

    const { data: metadata } = (await platform.ask(`GET ${BASE}/metadata`)).body;
    const typeOf = (name: string): string =>
      (metadata[name] ?? metadata[name.replace(/_(bucket|sum|count)$/, "")])?.[0].type;
    assert.deepEqual(
      names.filter((name) => typeOf(name) === undefined),
      [],
    );
    // Counters are those that the specification marks, and what ends in _count.
    assert.deepEqual(
      ["svc_instance_cpu", "svc_edge_data_in", "svc_app_concurrency", "svc_app_connect_time_seconds_sum"].map(typeOf),
      ["counter", "counter", "gauge", "histogram"],
    );
    for (const name of PROXY_SERIES.filter((one) => one.endsWith("s_count")))
      assert.notEqual(typeOf(name), "gauge", name);

    const ask = (text: string): Promise<Shown[]> => query(platform, clock, text);
    const standard = { app: "web", host: "0001", region: "local" };
    const [up] = await ask("svc_instance_up");
    assert.deepEqual(up?.metric, { __name__: "svc_instance_up", ...standard, instance: instance_id });
    assert.equal(up?.value[1], "1");
    const [size] = await ask("svc_volume_size_bytes");
    assert.deepEqual(size?.metric, { __name__: "svc_volume_size_bytes", ...standard, id: volume });
    const edge = await ask("svc_edge_data_out");
    assert.deepEqual(edge[0]?.metric, { __name__: "svc_edge_data_out", ...standard, proxy_id: "blue" });
    assert.equal((await ask("svc_instance_cpu")).length, 2 * 10);
    assert.deepEqual((await ask("svc_instance_memory_mem_total"))[0]?.value[1], String(512 * 2 ** 20));
    const labelOf = async (text: string, label: string): Promise<string[]> =>
      (await ask(text)).map(({ metric }) => metric[label] ?? "").sort();
    assert.deepEqual(await labelOf("svc_instance_disk_time_io", "device"), ["vdb", "vdc"]);
    assert.deepEqual(await labelOf("svc_instance_net_recv_bytes", "device"), ["dummy0", "eth0"]);
    assert.deepEqual(await labelOf("svc_instance_filesystem_blocks", "mount"), ["/", "/data"]);
    assert.deepEqual(await labelOf("svc_instance_load_average", "minutes"), ["1", "15", "5"]);
    assert.equal(Number((await ask("timestamp(svc_instance_up)"))[0]?.value[1]) % 15, 0);
    // Counters rise, and processors have a hundred centiseconds a second between all their modes.
    const [spent] = await ask("sum(increase(svc_instance_cpu[45s]))");
    assert.ok(Math.abs(Number(spent?.value[1]) - 2 * 4500) < 300, spent?.value[1]);
  });

  test("a stopped machine ends its series and reports its exit", async (t) => {
    const clock = clockHere();
    const platform = await bench(t, {}, { clock });
    const { create, on } = platform;
    const { id } = (await create({})).body;
    await until("its state", async () => (await on(`GET ${id}`)).body.state === "started");
    await rounds(platform, clock, 2);
    assert.equal((await query(platform, clock, "svc_instance_up")).length, 1);
    await on(`POST ${id}/stop`);
    await until("its state", async () => (await on(`GET ${id}`)).body.state === "stopped");
    await rounds(platform, clock, 1);
    assert.deepEqual(await query(platform, clock, "svc_instance_up"), []);
    const names = (await platform.ask(`GET ${BASE}/label/__name__/values`)).body.data as string[];
    assert.deepEqual(
      EXIT_SERIES.filter((name) => !names.includes(name)),
      [],
    );
    assert.equal((await query(platform, clock, "svc_instance_exit_code"))[0]?.value[1], "0");
  });

  test("deleting an organization deletes its metrics", async (t) => {
    const clock = clockHere();
    const platform = await bench(t, {}, { clock });
    await platform.ask("POST /v1/orgs", { body: { name: "gone" } });
    const { id } = (await platform.ask("GET /v1/orgs/gone")).body;
    const text = { format: "prometheus", timestamp_ms: clock.now() } as const;
    await platform.metrics().importText(id, Buffer.from("jobs 3\n"), text);
    const scope = { start_ms: 0, end_ms: clock.now() };
    assert.deepEqual(await platform.metrics().labelNames(id, scope), ["__name__"]);
    assert.equal((await platform.ask("DELETE /v1/orgs/gone")).status, 204);
    assert.deepEqual(await platform.metrics().labelNames(id, scope), []);
  });
});
