/**
 * The specification's list of series, held against a running platform with real machines under load: every name is
 * there, and the values say what was really done and what the kernel says. Metrics of a machine's own are scraped.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { request } from "node:http";
import { request as secureRequest } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { connect as secureConnect } from "node:tls";
import { cgroupDirs } from "#drivers/runtime/runc/cgroup.ts";
import { machinesCgroup } from "#drivers/runtime/runc/delegation.ts";
import { freePort } from "#proxy/fixtures.ts";
import { EXIT_SERIES, INSTANCE_SERIES, PROXY_SERIES, VOLUME_SERIES } from "../builtin-series.ts";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { type Caller, must, realPlatform } from "./runc-support.ts";

const skip = realMachinesMissing();
const MACHINES = "/v1/apps/web/machines";
const BASE = "/prometheus/personal/api/v1";
const MIB = 2 ** 20;
const WRITTEN = 24 * MIB;
const KEPT = 16 * MIB;
const HELD = 32 * MIB;
const SENT = 2 * MIB;
const PAGE = 4000;
const REQUESTS = 20;
const HANDSHAKES = 5;

/** Burns a processor, fills memory, a disk and a volume, and then serves pages and swallows what it is sent. */
const LOAD = `
mkdir -p /www && echo 'jobs{app="forged"} 42' > /www/metrics
dd if=/dev/zero of=/www/page bs=${PAGE} count=1
httpd -p 9091 -h /www
dd if=/dev/zero of=/file bs=1M count=${WRITTEN / MIB} && dd if=/dev/zero of=/data/file bs=1M count=${KEPT / MIB} && sync
dd if=/dev/zero of=/dev/shm/held bs=1M count=${HELD / MIB}
i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done
while :; do nc -l -p 9000 > /dev/null; done
`;
const GUEST = { cpus: 1, memory_mb: 256 };
const once = (script: string) => ({
  image: "busybox",
  init: { exec: ["sh", "-c", script] },
  guest: GUEST,
  restart: { policy: "no" },
});

type Get = <Data>(path: string) => Promise<Data>;
type Value = (query: string) => Promise<number>;
interface Ports {
  plain: number;
  secure: number;
}

test("every series of the specification exists and agrees with the kernel", {
  skip,
  timeout: 240_000,
}, async (t) => {
  const platform = realPlatform(t);
  busyboxLayer(join(platform.images, "busybox"));
  const caller = await platform.start();
  const { get, value } = asking(caller);
  const ports = { plain: await freePort(), secure: await freePort() };
  const { id, instance_id, private_ip, volume } = await busyMachine(caller, ports);
  await machinesThatEnd(caller, value);
  await until("traffic is taken", () => send(private_ip, 9000, SENT));
  await visit(ports);

  // The round after the traffic has everything that was done before it.
  await until("the traffic shows", async () => (await value('svc_instance_net_recv_bytes{device="eth0"}')) >= SENT);
  const asked = `svc_app_http_responses_count{instance="${instance_id}",status="200"}`;
  await until("the requests show", async () => (await value(asked)) === REQUESTS + HANDSHAKES);
  const known = await get<string[]>("/label/__name__/values");
  const specified = [...INSTANCE_SERIES, ...EXIT_SERIES, ...VOLUME_SERIES, ...PROXY_SERIES];
  assert.deepEqual(
    specified.filter((name) => !known.includes(name)),
    [],
  );
  await memoryAgrees(value);
  await disksAgree(value, volume);
  await trafficAgrees(value, instance_id);
  await cpuAgrees(platform.installation().node_id, id, value);
  assert.ok((await value("svc_instance_filefd_allocated")) >= 3);
  assert.equal(await value("svc_instance_oom_kills"), 0);
  // The kernel keeps it in the tree of version 2, which may stand beside version 1.
  if (existsSync("/proc/pressure/memory") && cgroupDirs("")["unified"])
    assert.ok((await value('svc_instance_pressure{resource="memory",kind="some"}')) >= 0);
  await scraped(get, value);
  await caller.ask("DELETE", "/v1/apps/web?force=true");
});

function asking(caller: Caller): { get: Get; value: Value } {
  const get: Get = async <Data>(path: string) => {
    const answer = await caller.ask("GET", `${BASE}${path}`);
    assert.equal(answer?.status, 200, path);
    return answer.body["data"] as Data;
  };
  return {
    get,
    async value(query) {
      const { result } = await get<{ result: { value: [number, string] }[] }>(
        `/query?query=${encodeURIComponent(query)}`,
      );
      return Number(result[0]?.value[1] ?? Number.NaN);
    },
  };
}

/** The machine that works, with a volume, open to the outside on two ports. */
async function busyMachine(caller: Caller, { plain, secure }: Ports) {
  const ask = async (method: string, path: string, body?: object): Promise<Record<string, string>> =>
    (await must(caller, method, path, body)) as Record<string, string>;
  await ask("POST", "/v1/apps", { app_name: "web" });
  await ask("POST", "/v1/apps/web/ip_assignments", { type: "shared_v4" });
  const volume = String((await ask("POST", "/v1/apps/web/volumes", { name: "data", size_gb: 1 }))["id"]);
  await until(
    "the volume is made",
    async () => (await ask("GET", `/v1/apps/web/volumes/${volume}`))["state"] === "created",
  );
  const ports = [
    { port: plain, handlers: ["http"] },
    { port: secure, handlers: ["tls", "http"] },
  ];
  const config = {
    image: "busybox",
    init: { exec: ["sh", "-c", LOAD] },
    guest: GUEST,
    mounts: [{ volume, path: "/data" }],
    metrics: { port: 9091, path: "/metrics" },
    services: [{ protocol: "tcp", internal_port: 9091, ports }],
  };
  const { id = "", instance_id = "", private_ip = "" } = await ask("POST", MACHINES, { config });
  await ask("GET", `${MACHINES}/${id}/wait?state=started&timeout=60`);
  return { id, instance_id, private_ip, volume };
}

/** One that fails by itself and one that takes more memory than it has. */
async function machinesThatEnd(caller: Caller, value: Value): Promise<void> {
  const ends: [script: string, code: number, oom: number][] = [
    ["exit 3", 3, 0],
    ["exec dd if=/dev/zero of=/dev/null bs=400M count=2", 137, 1],
  ];
  const made = ends.map(([script]) => must(caller, "POST", MACHINES, { config: once(script) }));
  for (const [i, { id, instance_id }] of (await Promise.all(made)).entries()) {
    const [script = "", code = 0, oom = 0] = ends[i] ?? [];
    const labels = `{app="web",instance="${String(instance_id)}"}`;
    const ended = async (): Promise<boolean> => Number.isFinite(await value(`svc_instance_exit_vm_code${labels}`));
    await until(`${script} ends`, ended).catch(async (thrown: unknown) => {
      const { state, events } = await must(caller, "GET", `${MACHINES}/${String(id)}`);
      throw new Error(`${script}: the machine is ${String(state)}: ${JSON.stringify(events)}`, { cause: thrown });
    });
    assert.equal(await value(`svc_instance_exit_code${labels}`), code, script);
    assert.equal(await value(`svc_instance_exit_oom${labels}`), oom, script);
  }
}

/** A known number of requests and handshakes, one of which fails. */
async function visit({ plain, secure }: Ports): Promise<void> {
  await until("the listener is open", () => send("127.0.0.1", plain, 0));
  const place = { host: "127.0.0.1", path: "/page", headers: { host: "web.localhost" }, agent: false } as const;
  for (let i = 0; i < REQUESTS; i++) assert.equal(await bodySize(request({ ...place, port: plain })), PAGE);
  const trusting = { servername: "web.localhost", rejectUnauthorized: false };
  for (let i = 0; i < HANDSHAKES; i++)
    assert.equal(await bodySize(secureRequest({ ...place, ...trusting, port: secure })), PAGE);
  await new Promise((resolve) => {
    const old = secureConnect({
      host: "127.0.0.1",
      port: secure,
      ...trusting,
      ciphers: "AES128-SHA",
      maxVersion: "TLSv1.2",
    });
    old.once("error", () => old.destroy()).once("close", resolve);
  });
}

async function bodySize(sent: ReturnType<typeof request>): Promise<number> {
  return await new Promise((resolve, reject) => {
    sent.once("error", reject);
    sent.once("response", (response) => {
      let bytes = 0;
      response.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
      response.once("error", reject).once("end", () => resolve(bytes));
    });
    sent.end();
  });
}

async function memoryAgrees(value: Value): Promise<void> {
  assert.equal(await value("svc_instance_up"), 1);
  assert.equal(await value("svc_instance_memory_mem_total"), 256 * MIB);
  const used = await value("svc_instance_memory_mem_total - svc_instance_memory_mem_free");
  assert.ok(used >= HELD && used < 256 * MIB, `${used} bytes are used`);
  assert.ok((await value("svc_instance_memory_shmem")) >= HELD, "what lies in /dev/shm is shared memory");
}

async function disksAgree(value: Value, volume: string): Promise<void> {
  for (const [device, mount, bytes] of [
    ["vdb", "/", WRITTEN],
    ["vdc", "/data", KEPT],
  ] as const) {
    const sectors = await value(`svc_instance_disk_sectors_written{device="${device}"}`);
    // A new ext4 also writes its inode tables and its journal, sooner or later.
    assert.ok(sectors * 512 >= bytes && sectors * 512 < bytes + 256 * MIB, `${sectors} sectors of ${device}`);
    const taken = await value(
      `svc_instance_filesystem_block_size{mount="${mount}"} * (svc_instance_filesystem_blocks - svc_instance_filesystem_blocks_free)`,
    );
    assert.ok(taken >= bytes, `${taken} bytes are taken at ${mount}`);
  }
  const size = await value(`svc_volume_size_bytes{app="web",id="${volume}",instance=""}`);
  const used = await value(`svc_volume_used_pct{id="${volume}"}`);
  assert.equal(size, 2 ** 30);
  assert.ok(used >= (KEPT / size) * 100 && used < 25, `${used} % of the volume are used`);
}

async function trafficAgrees(value: Value, instance: string): Promise<void> {
  const received = await value('svc_instance_net_recv_bytes{device="eth0"}');
  assert.ok(received < 1.5 * SENT, `${received} bytes were received`);
  const all = REQUESTS + HANDSHAKES;
  const edge = 'app="web",instance="",proxy_id="blue"';
  assert.equal(await value(`svc_edge_http_responses_count{${edge},status="200"}`), all);
  assert.equal(await value(`svc_edge_http_response_time_seconds_bucket{${edge},status="200",le="+Inf"}`), all);
  assert.equal(await value(`svc_edge_tls_handshake_time_seconds_count{${edge},version="1.3"}`), HANDSHAKES);
  assert.equal(await value(`svc_edge_tls_handshake_errors{${edge},servername="web.localhost"}`), 1);
  const out = await value(`svc_edge_data_out{${edge}}`);
  assert.ok(out >= all * PAGE && out < all * (PAGE + 4000), `${out} bytes went out`);
  assert.ok((await value(`svc_app_tcp_connects_count{instance="${instance}"}`)) >= 1);
}

async function scraped(get: Get, value: Value): Promise<void> {
  await until("the machine is scraped", async () => (await value('jobs{app="web"}')) === 42);
  await until("its health shows", async () => (await value("up")) === 1);
  const { activeTargets } = await get<{ activeTargets: { health: string; lastError: string }[] }>("/targets");
  assert.deepEqual([activeTargets[0]?.health, activeTargets[0]?.lastError], ["up", ""]);
}

/** What was counted for the machine becomes what its cgroup counts: the machine sleeps, so the round after its last work has all of it. */
async function cpuAgrees(node_id: string, id: string, value: Value): Promise<void> {
  await until("the machine's CPU time is what the kernel says", async () => {
    const told = await value('sum(svc_instance_cpu{mode=~"user|system"})');
    const kernel = cgroupCentiseconds(`${machinesCgroup(node_id)}/${id}`);
    return told >= 20 && Math.abs(told - kernel) <= 0.1 * kernel + 20;
  });
}

function cgroupCentiseconds(path: string): number {
  for (const [file, pattern, per] of [
    [`/sys/fs/cgroup/cpuacct${path}/cpuacct.usage`, /^(\d+)/, 1e7],
    [`/sys/fs/cgroup/cpu,cpuacct${path}/cpuacct.usage`, /^(\d+)/, 1e7],
    [`/sys/fs/cgroup${path}/cpu.stat`, /^usage_usec (\d+)/m, 1e4],
  ] as const) {
    try {
      return Number(pattern.exec(readFileSync(file, "utf8"))?.[1]) / per;
    } catch {
      // Mounted elsewhere, or the other version.
    }
  }
  assert.fail(`no cgroup ${path} counts CPU time`);
}

/** True when all of it was taken. */
async function send(host: string, port: number, bytes: number): Promise<boolean> {
  return await new Promise((resolve) => {
    const socket = connect(port, host);
    socket.once("error", () => resolve(false));
    socket.once("connect", () => socket.end(Buffer.alloc(bytes, 1)));
    socket.once("close", (failed) => resolve(!failed));
    socket.resume();
  });
}
