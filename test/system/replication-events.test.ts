/** The event stream through reconnects and changes of primary: `init` first, nothing missing, nothing twice. And slow readers. */
import assert from "node:assert/strict";
import { type ClientRequest, get } from "node:http";
import { connect } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { runs, until } from "../support.ts";
import { freePort, info, progress, Stage } from "./replication-support.ts";

interface Event {
  type: string;
  data: { txID?: string; isPrimary?: boolean; hostname?: string; postApplyChecksum?: string };
}

class Listener {
  readonly events: Event[] = [];
  readonly #request: ClientRequest;

  constructor(port: number) {
    let rest = "";
    this.#request = get(`http://127.0.0.1:${port}/events`, (response) => {
      response.setEncoding("utf8");
      response.on("data", (text: string) => {
        const lines = (rest + text).split("\n");
        rest = lines.pop() ?? "";
        for (const line of lines) this.events.push(JSON.parse(line) as Event);
      });
      response.on("error", () => undefined);
    });
    this.#request.on("error", () => undefined);
  }

  close(): void {
    this.#request.destroy();
  }

  /** Notes the checksum of each transaction; two nodes, or two moments, must not differ. */
  remember(seen: Map<string, string>): void {
    for (const { data } of this.events) {
      if (data.txID === undefined) continue;
      const known = seen.get(data.txID) ?? data.postApplyChecksum;
      assert.equal(data.postApplyChecksum, known, `transaction ${data.txID}`);
      seen.set(data.txID, known ?? "");
    }
  }

  /** Checks the stream's own promises and returns its transactions. */
  check(what: string): { first: number; last: number } | undefined {
    const [init, ...others] = this.events;
    if (!init) return undefined;
    assert.equal(init.type, "init", what);
    assert.ok(
      others.every(({ type }) => type !== "init"),
      `${what}: init comes once`,
    );
    const told = [init, ...others.filter(({ type }) => type === "primaryChange")].map(({ data }) =>
      JSON.stringify(data),
    );
    assert.ok(
      told.every((text, i) => text !== told[i - 1]),
      `${what}: no change is told twice`,
    );
    const ids = others.filter(({ type }) => type === "tx").map(({ data }) => Number(`0x${data.txID}`));
    for (const [i, id] of ids.entries())
      if (i > 0) assert.equal(id, (ids[i - 1] ?? 0) + 1, `${what}: ${ids.slice(i - 2, i + 2).join(" ")}`);
    const [first, last] = [ids[0], ids.at(-1)];
    return first === undefined || last === undefined ? undefined : { first, last };
  }
}

interface Cluster {
  ports: readonly [number, number];
  dirOf(port: number): string;
  primary(): Promise<number>;
  /** Makes the other node primary, and waits until everything is as before. */
  promote(from: number): Promise<void>;
}

async function startCluster(stage: Stage): Promise<Cluster> {
  const dirs = [stage.dir(), stage.dir()] as const;
  const ports = [await freePort(), await freePort()] as const;
  const lease = join(stage.dir(), "lease.db");
  for (const i of [0, 1] as const) stage.node(dirs[i], ports[i], "--lease", `sqlite:${lease}`);
  for (const port of ports) await until("the node answers", async () => (await info(port)) !== undefined);
  const primary = async (): Promise<number> => {
    let found = 0;
    await until("somebody is primary", async () => {
      for (const port of ports) if ((await info(port))?.isPrimary) found = port;
      return found !== 0;
    });
    return found;
  };
  const promote = async (from: number): Promise<void> => {
    const to = ports[0] === from ? ports[1] : ports[0];
    await until("the other has everything", async () => {
      const [a, b] = [await info(from), await info(to)];
      return a?.databases["db"] !== undefined && a.databases["db"] === b?.databases["db"];
    });
    const answer = await fetch(`http://127.0.0.1:${to}/promote`, { method: "POST" });
    assert.equal(answer.status, 200, await answer.text());
    await until("the old one follows", async () => ((await info(to))?.replicas.length ?? 0) === 1);
  };
  return { ports, primary, promote, dirOf: (port) => (port === ports[0] ? dirs[0] : dirs[1]) };
}

async function writeAndListen(
  { ports, dirOf }: Cluster,
  from: number,
  times: number,
  seen: Map<string, string>,
): Promise<void> {
  const app = new DatabaseSync(join(dirOf(from), "db"), { timeout: 5000 });
  app.exec("PRAGMA journal_mode = WAL; CREATE TABLE IF NOT EXISTS t(x)");
  for (let i = 0; i < times; i++) {
    const listener = new Listener(ports[i % 2] ?? 0);
    await until("init", () => listener.events.length > 0);
    for (let n = 0; n < 3; n++) app.exec("INSERT INTO t VALUES (1)");
    await delay(10);
    listener.close();
    listener.check("a short stream");
    listener.remember(seen);
  }
  app.close();
}

suite("event stream of a cluster", { timeout: 900_000 }, () => {
  test("over many reconnects and changes of primary, ids are contiguous and checksums agree (E2)", async (t) => {
    const stage = new Stage(t);
    const cluster = await startCluster(stage);
    const [changes, reconnects] = [runs(3, 50), runs(12, 200)];
    const say = progress(t, changes);
    const seen = new Map<string, string>();
    const steady = cluster.ports.map((port) => new Listener(port));
    stage.later(() => {
      for (const listener of steady) listener.close();
    });
    for (let change = 0; change < changes; change++) {
      const from = await cluster.primary();
      await writeAndListen(cluster, from, reconnects / changes, seen);
      await cluster.promote(from);
      say(change);
    }
    for (const listener of steady) {
      const turns = (): number => listener.events.filter(({ type }) => type === "primaryChange").length;
      await until(`${changes} changes are told`, () => turns() >= changes);
      assert.ok(listener.check("a stream through everything"));
      listener.remember(seen);
    }
    t.diagnostic(`${changes} changes of primary, ${reconnects} reconnects, ${seen.size} transactions`);
  });

  test("a reader that does not read is cut off and counted, and costs the others nothing (E1)", async (t) => {
    const stage = new Stage(t);
    const dir = stage.dir();
    const port = await freePort();
    stage.node(dir, port, "--primary");
    await until("the node answers", async () => (await info(port)) !== undefined);
    const stalled = Array.from({ length: 5 }, () => {
      const socket = connect(port, "127.0.0.1");
      socket.write("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
      socket.pause();
      socket.on("error", () => undefined);
      return socket;
    });
    stage.later(() => {
      for (const socket of stalled) socket.destroy();
    });
    const good = new Listener(port);
    stage.later(() => good.close());
    await until("greeted", () => good.events.length > 0);
    const metric = async (name: string): Promise<number> => {
      const text = await (await fetch(`http://127.0.0.1:${port}/metrics`)).text();
      return Number(new RegExp(`^hangar_db_${name} (.*)$`, "m").exec(text)?.[1]);
    };
    // The kernel holds some megabytes for each of them before the node notices anything.
    // At a rate that a reader of this process, which does other things too, can follow.
    // With a name that makes events long.
    const name = "d".repeat(190);
    const writer = stage.writer(join(dir, name), 600, 500);
    await until("all five are cut", async () => (await metric("event_readers_cut_total")) >= 5);
    await writer.end("SIGKILL");
    assert.equal(await metric("event_readers"), 1);
    await until("the good one has everything", async () => {
      const position = (await info(port))?.databases[name]?.slice(0, 16);
      return good.events.at(-1)?.data.txID === position;
    });
    assert.ok(good.check("the good reader"));
  });
});
