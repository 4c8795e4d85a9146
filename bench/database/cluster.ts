/** What hosts and machines cost PostgreSQL, on the sim driver. */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { type Cluster, insist, startCluster } from "../../test/system/hosts-support.ts";
import type { Report } from "../report.ts";
import { Postgres, statOf, type Used } from "./server.ts";

const LEASE_S = 15;
const CALLERS = 8;
const PATH = "/v1/apps/web/machines";

export interface ClusterSizes {
  hosts: number;
  machines: number;
  seconds: number;
}

/** One control process and so many hosts, gone afterwards. */
async function inCluster<Found>(
  count: number,
  sizes: ClusterSizes,
  work: (cluster: Cluster, postgres: Postgres, sizes: ClusterSizes) => Promise<Found>,
): Promise<Found> {
  await using made = new AsyncDisposableStack();
  const after = (end: () => Promise<void>): void => made.defer(async () => await end());
  const t = { after, diagnostic: () => {} } as unknown as Parameters<typeof startCluster>[0];
  const cluster = await startCluster(t, { controls: 1, hosts: count, lease_s: LEASE_S });
  const postgres = await Postgres.open(cluster.flags[1] ?? "");
  made.defer(() => postgres.close());
  return await work(cluster, postgres, sizes);
}

async function idleCost(_: Cluster, postgres: Postgres, { seconds }: ClusterSizes): Promise<Used> {
  const before = await postgres.used();
  await delay(seconds * 1000);
  const after = await postgres.used();
  const each = (name: keyof Used): number => (after[name] - before[name]) / seconds;
  const { sessions } = after;
  return { cpu_ms: each("cpu_ms"), commits: each("commits"), wal_bytes: each("wal_bytes"), sessions };
}

export async function hosts(report: Report, sizes: ClusterSizes): Promise<void> {
  report.section(`a host that has nothing to do (lease of ${LEASE_S} s)`);
  const [one, many] = [await inCluster(1, sizes, idleCost), await inCluster(sizes.hosts, sizes, idleCost)];
  const each = (name: keyof Used): number => (many[name] - one[name]) / (sizes.hosts - 1);
  report.add({ what: "sessions of a host", value: each("sessions"), unit: "sessions" });
  report.add({ what: "transactions of a host", value: each("commits"), unit: "/s" });
  report.add({ what: "log of a host", value: each("wal_bytes") / 1024, unit: "KiB/s" });
  const cpu_ms = each("cpu_ms");
  report.add({ what: "processor time of PostgreSQL for a host", value: cpu_ms, unit: "ms/s" });
  report.add({ what: "hosts whose idling takes one core of PostgreSQL", value: 1000 / cpu_ms, unit: "hosts" });
}

/** `heard_ms`: what one more process that hears a notification costs the server; undefined when it was not measured. */
export async function machines(report: Report, sizes: ClusterSizes, heard_ms: number | undefined): Promise<void> {
  report.section("a machine: created, started, stopped, destroyed, through one control process and one host");
  await inCluster(1, sizes, (cluster, postgres) => lives(report, sizes, { cluster, postgres, heard_ms }));
}

interface Parts {
  cluster: Cluster;
  postgres: Postgres;
  heard_ms: number | undefined;
}

async function lives(report: Report, sizes: ClusterSizes, { cluster, postgres, heard_ms }: Parts): Promise<void> {
  const [control] = cluster.controls;
  const [host] = cluster.hosts;
  assert.ok(control && host);
  await insist(control, "POST", "/v1/apps", { app_name: "web", org_slug: "personal" });
  const life = async (): Promise<void> => {
    const { id } = (await insist(control, "POST", PATH, { config: { image: "web:1" } })) as { id: string };
    await insist(control, "GET", `${PATH}/${id}/wait?state=started&timeout=60`);
    await insist(control, "POST", `${PATH}/${id}/stop`);
    await insist(control, "GET", `${PATH}/${id}/wait?state=settled&timeout=60`);
    await insist(control, "DELETE", `${PATH}/${id}`);
  };
  const all = async (count: number): Promise<void> => {
    let left = count;
    const caller = async (): Promise<void> => {
      while (left-- > 0) await life();
    };
    await Promise.all(Array.from({ length: CALLERS }, caller));
  };
  await all(CALLERS * 2);
  let sent = 0;
  const listener = new pg.Client(cluster.flags[1] ?? "");
  await listener.connect();
  listener.on("notification", () => sent++);
  await listener.query("LISTEN hangar");
  const cpu = () => [control, host].map(({ child }) => statOf(child.pid)?.own_ms ?? 0);
  const [before, [control_before = 0, host_before = 0], began] = [await postgres.used(), cpu(), performance.now()];
  await all(sizes.machines);
  const seconds = (performance.now() - began) / 1000;
  const [after, [control_after = 0, host_after = 0]] = [await postgres.used(), cpu()];
  await listener.end();
  const each = (name: keyof Used): number => (after[name] - before[name]) / sizes.machines;
  const cpu_ms = each("cpu_ms");
  report.add({ what: "lives a second, as the box was", value: sizes.machines / seconds, unit: "/s" });
  report.add({ what: "transactions of a life", value: each("commits"), unit: "" });
  report.add({ what: "log of a life", value: each("wal_bytes") / 1024, unit: "KiB" });
  report.add({ what: "notifications of a life", value: sent / sizes.machines, unit: "" });
  report.add({ what: "processor time of PostgreSQL for a life", value: cpu_ms, unit: "ms" });
  const of_control = (control_after - control_before) / sizes.machines;
  report.add({ what: "processor time of the control process for a life", value: of_control, unit: "ms" });
  report.add({
    what: "processor time of the host for a life",
    value: (host_after - host_before) / sizes.machines,
    unit: "ms",
  });
  report.add({ what: "lives a second that take one core of PostgreSQL", value: 1000 / cpu_ms, unit: "/s" });
  const control_lives = 1000 / of_control;
  report.add({ what: "lives a second that take the one core of a control process", value: control_lives, unit: "/s" });
  if (heard_ms === undefined) return;
  const processes = cpu_ms / ((sent / sizes.machines) * heard_ms);
  const what = "processes with which notifications cost PostgreSQL as much as the writes";
  report.add({ what, value: processes, unit: "processes" });
}
