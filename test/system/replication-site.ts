/** Database nodes with an HTTP proxy each, before applications in Python. */
import { DatabaseSync } from "node:sqlite";
import type { TestContext } from "node:test";
import { until } from "../support.ts";
import { Cluster, type Member } from "./replication-cluster.ts";
import { freePort, Stage } from "./replication-support.ts";
import { WebApp } from "./replication-web-app.ts";

export interface Site {
  stage: Stage;
  cluster: Cluster;
  /** By member: where its proxy and its application listen. */
  proxies: string[];
  apps: number[];
  proxyOf(member: Member): string;
}

export async function site(t: TestContext, count: number, ...more: string[]): Promise<Site> {
  const stage = new Stage(t);
  const [proxies, apps]: [number[], number[]] = [[], []];
  for (let i = 0; i < count; i++) {
    proxies.push(await freePort());
    apps.push(await freePort());
  }
  const cluster = await Cluster.start(stage, count, (i) => [
    `--proxy-listen=127.0.0.1:${proxies[i]}`,
    `--proxy-app=http://127.0.0.1:${apps[i]}`,
    "--proxy-db=db",
    "--proxy-local=/static/*",
    "--proxy-primary=/visit",
    ...more,
  ]);
  const primary = await cluster.whole();
  const db = new DatabaseSync(cluster.path(primary), { timeout: 10_000 });
  db.exec("PRAGMA journal_mode = WAL; CREATE TABLE notes (id TEXT PRIMARY KEY, text)");
  db.close();
  for (const [i, member] of cluster.members.entries()) {
    await until("the database is there", async () => {
      const response = await fetch(`${member.url}/wait?db=db&txid=1&timeout=10s`);
      return response.status === 200;
    });
    await WebApp.start(stage, cluster.path(member), apps[i] ?? 0);
  }
  const urls = proxies.map((port) => `http://127.0.0.1:${port}`);
  const proxyOf = (member: Member): string => urls[cluster.members.indexOf(member)] ?? "";
  return { stage, cluster, proxies: urls, apps, proxyOf };
}

export const post = (url: string, id: string, headers: Record<string, string> = {}): Promise<Response> =>
  fetch(`${url}/notes/${id}`, { method: "POST", body: `text of ${id}`, headers });
