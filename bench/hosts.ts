/**
 * Several hosts on one PostgreSQL, on the sim driver: how fast a word crosses the database, how long a start takes when
 * another process carries it out and a third one waits for it, what more hosts bring, and how long a lost one is missed.
 * All processes share this box, so more hosts add processes and no processors.
 */
import assert from "node:assert/strict";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { openPostgresNotifier } from "#stores/postgres/notifier.ts";
import { postgresMissing, startPostgres } from "../test/postgres.ts";
import type { Daemon } from "../test/system/daemon.ts";
import { type Cluster, insist, LEASE_S, machinesOf, startCluster, until } from "../test/system/hosts-support.ts";
import { quantile, type Report } from "./report.ts";

const WORDS = 500;
const STARTS = 100;
const MACHINES = 120;
const PATH = "/v1/apps/web/machines";
const CONFIG = {
  image: "web:1",
  guest: { cpus: 1, memory_mb: 256 },
  metadata: { hangar_on_host_loss: "move" },
};

export async function run(report: Report): Promise<void> {
  const missing = postgresMissing();
  if (missing) return report.skip("several hosts", missing);
  await benchNotifications(report);
  for (const hosts of [1, 2, 3]) await inCluster(hosts, (cluster) => throughput(report, cluster));
  await inCluster(3, async (cluster) => {
    await starts(report, cluster);
    await failover(report, cluster);
  });
}

/** A cluster that is gone afterwards, whatever happens. */
async function inCluster(hosts: number, work: (cluster: Cluster) => Promise<void>): Promise<void> {
  await using made = new AsyncDisposableStack();
  const after = (end: () => Promise<void>): void => made.defer(async () => await end());
  const t = { after, diagnostic: () => {} } as unknown as Parameters<typeof startCluster>[0];
  const cluster = await startCluster(t, { controls: 2, hosts });
  const [control] = cluster.controls;
  assert.ok(control);
  await insist(control, "POST", "/v1/apps", { app_name: "web", org_slug: "personal" });
  await work(cluster);
}

async function benchNotifications(report: Report): Promise<void> {
  report.section("a notification from one process to another");
  const postgres = await startPostgres({ fsync: true });
  const url = await postgres.database();
  const parts = { clock: systemClock, log: silentLog };
  const [here, there] = [await openPostgresNotifier(url, parts), await openPostgresNotifier(url, parts)];
  const each: number[] = [];
  for (let index = 0; index < WORDS; index++) {
    const heard = Promise.withResolvers<void>();
    const end = there.listen("machines", () => heard.resolve());
    const began = performance.now();
    here.send("machines", String(index));
    await heard.promise;
    each.push(performance.now() - began);
    end();
  }
  await Promise.all([here.close(), there.close()]);
  await postgres.stop();
  report.add({ what: "sent to received, p50", value: quantile(each, 0.5), unit: "ms", at_most: 20 });
  report.add({ what: "sent to received, p99", value: quantile(each, 0.99), unit: "ms" });
}

async function throughput(report: Report, { controls, hosts }: Cluster): Promise<void> {
  report.section("machines created and started, through two control processes");
  const began = performance.now();
  await Promise.all(Array.from({ length: MACHINES }, (_, index) => create(controls[index % 2], {})));
  await until("all run", async () => {
    const [control] = controls;
    return control && (await machinesOf(control)).every(({ state }) => state === "started");
  });
  const value = MACHINES / ((performance.now() - began) / 1000);
  const [first] = hosts.length === 1 ? [] : ["1 host"];
  report.add({
    what: `${hosts.length} host${hosts.length === 1 ? "" : "s"}`,
    value,
    unit: "machines/s",
    ...(first ? { to: first } : {}),
  });
}

async function starts(report: Report, { controls }: Cluster): Promise<void> {
  report.section("a start, requested from one process, executed by a second, awaited at a third");
  const [asks, waits] = controls as [Daemon, Daemon];
  const each: number[] = [];
  for (let index = 0; index < STARTS; index++) {
    const id = await create(asks, { skip_launch: true });
    const began = performance.now();
    await asks.call("POST", `${PATH}/${id}/start`);
    const { status } = await waits.call("GET", `${PATH}/${id}/wait?state=started&timeout=60`);
    assert.equal(status, 200);
    each.push(performance.now() - began);
  }
  report.add({ what: "request to started, p50", value: quantile(each, 0.5), unit: "ms" });
  report.add({ what: "request to started, p99", value: quantile(each, 0.99), unit: "ms" });
}

async function failover(report: Report, { controls: [control], hosts: [host] }: Cluster): Promise<void> {
  report.section(`a host is killed, with leases of ${LEASE_S} s`);
  assert.ok(control && host);
  const began = performance.now();
  await host.child.kill();
  await until("its machines run elsewhere", async () =>
    (await machinesOf(control)).every((machine) => machine.state === "started" && machine.host !== host.id),
  );
  const value = (performance.now() - began) / 1000 / LEASE_S;
  report.add({ what: "until its machines run elsewhere", value, unit: "leases", at_most: 2 });
}

async function create(control: Daemon | undefined, more: object): Promise<string> {
  assert.ok(control);
  return String((await insist(control, "POST", PATH, { config: CONFIG, ...more }))["id"]);
}
