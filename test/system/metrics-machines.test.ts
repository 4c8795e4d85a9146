/** Built-in series of a real machine under load, held against what was really done; and metrics of its own, scraped. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { INSTANCE_SERIES } from "../builtin-series.ts";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { realPlatform } from "./runc-support.ts";

const skip = realMachinesMissing();
const BASE = "/prometheus/personal/api/v1";
const MIB = 2 ** 20;
const WRITTEN = 24 * MIB;
const HELD = 32 * MIB;
const SENT = 2 * MIB;

/** Burns a processor, fills memory and a disk, and then serves a page of metrics and swallows what it is sent. */
const LOAD = `
mkdir -p /www && echo 'jobs{app="forged"} 42' > /www/metrics
httpd -p 9091 -h /www
dd if=/dev/zero of=/file bs=1M count=24 && sync
dd if=/dev/zero of=/dev/shm/held bs=1M count=32
i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done
echo loaded
while :; do nc -l -p 9000 > /dev/null; done
`;
const config = {
  image: "busybox",
  init: { exec: ["sh", "-c", LOAD] },
  guest: { cpus: 1, memory_mb: 256 },
  metrics: { port: 9091, path: "/metrics" },
};

test("a machine's series say what the kernel says", { skip, timeout: 180_000 }, async (t) => {
  const platform = realPlatform(t);
  busyboxLayer(join(platform.images, "busybox"));
  const caller = await platform.start();
  await caller.ask("POST", "/v1/apps", { app_name: "web" });
  const created = await caller.ask("POST", "/v1/apps/web/machines", { config });
  const id = String(created?.body["id"]);
  const ip = String(created?.body["private_ip"]);
  await caller.ask("GET", `/v1/apps/web/machines/${id}/wait?state=started&timeout=60`);
  await until("traffic is taken", () => send(ip, 9000, SENT));

  const get = async <Data>(path: string): Promise<Data> => {
    const answer = await caller.ask("GET", `${BASE}${path}`);
    assert.equal(answer?.status, 200, path);
    return answer.body["data"] as Data;
  };
  const value = async (query: string): Promise<number> => {
    const { result } = await get<{ result: { value: [number, string] }[] }>(
      `/query?query=${encodeURIComponent(query)}`,
    );
    return Number(result[0]?.value[1] ?? Number.NaN);
  };
  // The round after the traffic has everything that was done before it.
  await until("the traffic shows", async () => (await value('svc_instance_net_recv_bytes{device="eth0"}')) >= SENT);
  const known = await get<string[]>("/label/__name__/values");
  assert.deepEqual(
    INSTANCE_SERIES.filter((name) => !known.includes(name)),
    [],
  );
  assert.equal(await value("svc_instance_up"), 1);
  assert.equal(await value("svc_instance_memory_mem_total"), 256 * MIB);
  const used = await value("svc_instance_memory_mem_total - svc_instance_memory_mem_free");
  assert.ok(used >= HELD && used < 256 * MIB, `${used} bytes are used`);
  assert.ok((await value("svc_instance_memory_shmem")) >= HELD, "what lies in /dev/shm is shared memory");
  const sectors = await value('svc_instance_disk_sectors_written{device="vdb"}');
  // A new ext4 also writes its inode tables and its journal, sooner or later.
  assert.ok(sectors * 512 >= WRITTEN && sectors * 512 < WRITTEN + 256 * MIB, `${sectors} sectors were written`);
  const taken = await value(
    'svc_instance_filesystem_block_size{mount="/"} * (svc_instance_filesystem_blocks - svc_instance_filesystem_blocks_free)',
  );
  assert.ok(taken >= WRITTEN, `${taken} bytes are taken`);
  const received = await value('svc_instance_net_recv_bytes{device="eth0"}');
  assert.ok(received < 1.5 * SENT, `${received} bytes were received`);
  await cpuAgrees(platform.data_dir, id, value);
  assert.ok((await value("svc_instance_filefd_allocated")) >= 3);

  await until("the machine is scraped", async () => (await value('jobs{app="web"}')) === 42);
  await until("its health shows", async () => (await value("up")) === 1);
  const { activeTargets } = await get<{ activeTargets: { health: string; lastError: string }[] }>("/targets");
  assert.deepEqual([activeTargets[0]?.health, activeTargets[0]?.lastError], ["up", ""]);
  await caller.ask("DELETE", "/v1/apps/web?force=true");
});

/** What was counted for the machine is within what its cgroup counts now: it sleeps, so nothing is added meanwhile. */
async function cpuAgrees(data_dir: string, id: string, value: (query: string) => Promise<number>): Promise<void> {
  const node_id = readFileSync(join(data_dir, "node_id"), "utf8").trim();
  const told = await value('sum(svc_instance_cpu{mode=~"user|system"})');
  const kernel = cgroupCentiseconds(`hangar/${node_id}/${id}`);
  assert.ok(told >= 20, `${told} centiseconds were burnt`);
  assert.ok(
    kernel === undefined || Math.abs(told - kernel) <= 0.1 * kernel + 20,
    `${told} told, ${kernel} by the kernel`,
  );
}

function cgroupCentiseconds(path: string): number | undefined {
  for (const [file, per] of [
    [`/sys/fs/cgroup/cpuacct/${path}/cpuacct.usage`, 1e7],
    [`/sys/fs/cgroup/cpu,cpuacct/${path}/cpuacct.usage`, 1e7],
  ] as const) {
    try {
      return Number(readFileSync(file, "utf8")) / per;
    } catch {
      // Mounted elsewhere, or the other version.
    }
  }
  return undefined;
}

async function until(what: string, holds: () => Promise<boolean>): Promise<void> {
  for (let tries = 0; !(await holds()); tries++) {
    assert.ok(tries < 300, `${what}: not within a minute`);
    await delay(200);
  }
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
