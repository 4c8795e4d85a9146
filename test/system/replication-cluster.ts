/** A cluster of database nodes that elect their primary, as processes that can be killed and started again. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { until } from "../support.ts";
import { freePort, info, type Process, type Stage } from "./replication-support.ts";

export interface Member {
  dir: string;
  port: number;
  /** host:port, as other nodes name it. */
  url: string;
  process: Process;
}

/** What to add to the arguments of one node. */
export type MoreArguments = (index: number) => readonly string[];

export class Cluster {
  readonly #stage: Stage;
  readonly #lease: string;
  readonly #more: MoreArguments;
  readonly members: Member[] = [];

  private constructor(stage: Stage, more: MoreArguments) {
    this.#stage = stage;
    this.#lease = `sqlite:${join(stage.dir(), "lease")}`;
    this.#more = more;
  }

  static async start(stage: Stage, count: number, more: MoreArguments = () => []): Promise<Cluster> {
    const cluster = new Cluster(stage, more);
    for (let i = 0; i < count; i++) {
      const port = await freePort();
      const dir = stage.dir();
      const member = { dir, port, url: `http://127.0.0.1:${port}` };
      cluster.members.push({ ...member, process: cluster.#run(i, member) });
    }
    await cluster.primary();
    return cluster;
  }

  #run(index: number, { dir, port }: Pick<Member, "dir" | "port">): Process {
    return this.#stage.node(dir, port, "--lease", this.#lease, ...this.#more(index));
  }

  /** Whoever is primary, as soon as somebody is. */
  async primary(): Promise<Member> {
    return await until("somebody is primary", async () => {
      const infos = await Promise.all(this.members.map(({ port }) => info(port)));
      return this.members[infos.findIndex((found) => found?.isPrimary === true)];
    });
  }

  others(member: Member): Member[] {
    return this.members.filter((other) => other !== member);
  }

  /** All members are there, and follow the primary. */
  async whole(): Promise<Member> {
    return await until("all follow one primary", async () => {
      const infos = await Promise.all(this.members.map(({ port }) => info(port)));
      const at = infos.findIndex((found) => found?.isPrimary === true);
      const replicas = infos[at]?.replicas.length;
      return replicas === this.members.length - 1 ? this.members[at] : undefined;
    });
  }

  async kill(member: Member): Promise<void> {
    await member.process.end("SIGKILL");
  }

  restart(member: Member): void {
    member.process = this.#run(this.members.indexOf(member), member);
  }

  path(member: Member, name = "db"): string {
    return join(member.dir, name);
  }
}

/** The first of these members on which a program can commit, and after how long. */
export async function firstWrite(cluster: Cluster, members: readonly Member[], sql: string): Promise<[Member, number]> {
  const began = performance.now();
  const open = new Map<Member, DatabaseSync>();
  try {
    return await until(
      "somebody accepts a write",
      () => {
        for (const member of members) {
          const db = open.get(member) ?? new DatabaseSync(cluster.path(member), { timeout: 0 });
          open.set(member, db);
          try {
            db.exec(sql);
            return [member, performance.now() - began] as [Member, number];
          } catch (error) {
            assert.match(String(error), /locked|busy/);
          }
        }
        return undefined;
      },
      { every_ms: 5 },
    );
  } finally {
    for (const db of open.values()) db.close();
  }
}
