/** A snapshot of a large database, to a replica that is killed and whose link is cut: what has come is not sent again. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite, type TestContext, test } from "node:test";
import { random, runs, seed, until } from "../support.ts";
import { freePort, info, type Process, Stage, samePositionOn } from "./replication-support.ts";

const MIB = 1024 * 1024;
const PATIENCE_MS = 600_000;
/** Of each break: a block of 1,024 pages that was not whole, and what the kernel and the relay had in their buffers. */
const LOST_BYTES = 16 * MIB;

/** The way to a node, on which bytes are counted and which can be cut. */
class Relay {
  url = "";
  /** Bytes from the node. */
  passed = 0;
  readonly #open = new Set<Socket>();

  static async start(t: TestContext, port: number): Promise<Relay> {
    const relay = new Relay();
    const server = createServer((client) => relay.#join(client, connect(port, "127.0.0.1")));
    server.listen(0, "127.0.0.1");
    await once(server, "listening");
    t.after(() => {
      relay.cut();
      server.close();
    });
    relay.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
    return relay;
  }

  cut(): void {
    for (const socket of this.#open) socket.destroy();
  }

  #join(client: Socket, node: Socket): void {
    node.on("data", (part: Buffer) => {
      this.passed += part.length;
    });
    for (const [from, to] of [
      [client, node],
      [node, client],
    ] as const) {
      this.#open.add(from);
      from.on("error", () => undefined);
      from.on("close", () => {
        this.#open.delete(from);
        to.destroy();
      });
      from.pipe(to);
    }
  }
}

function makeLarge(path: string, megabytes: number): number {
  const db = new DatabaseSync(path);
  db.exec("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF; CREATE TABLE large (bytes BLOB)");
  const insert = db.prepare("INSERT INTO large VALUES (randomblob(1048576))");
  for (let n = 0; n < megabytes; n++) insert.run();
  const pages = Number(db.prepare("PRAGMA page_count").get()?.["page_count"]);
  db.close();
  return pages * 4096;
}

suite("interrupted large snapshot", { timeout: 1_800_000 }, () => {
  test("after kill -9 of the replica and a cut connection the snapshot resumes where it stopped (R14)", async (t) => {
    const next = random(seed(t));
    const stage = new Stage(t);
    const [here, there] = [stage.dir(), stage.dir()];
    const ports = [await freePort(), await freePort()] as const;
    const bytes = makeLarge(join(here, "db"), runs(200, 400));
    stage.node(here, ports[0], "--primary");
    const opened = async (): Promise<boolean> => (await info(ports[0]))?.databases["db"] !== undefined;
    await until("the primary has opened it", opened, { limit_ms: PATIENCE_MS });
    const relay = await Relay.start(t, ports[0]);
    const follow = (): Process => stage.node(there, ports[1], "--join", relay.url);
    let replica = follow();
    const breaks = ["SIGKILL", "cut", "SIGKILL", "SIGKILL", "cut"] as const;
    for (const how of breaks) {
      const before = relay.passed;
      // At any place of what one break may send.
      const enough = (bytes / (breaks.length + 1)) * (0.5 + next() / 2);
      await until(`${how} in the middle`, () => relay.passed > before + enough, { limit_ms: PATIENCE_MS, every_ms: 1 });
      if (how === "cut") {
        relay.cut();
        continue;
      }
      await replica.end("SIGKILL");
      replica = follow();
    }
    await samePositionOn(ports[0], ports[1], "db", PATIENCE_MS);
    const [sent, size] = [relay.passed / MIB, bytes / MIB];
    t.diagnostic(`${Math.round(sent)} MiB on the wire for ${Math.round(size)} MiB, ${breaks.length} breaks`);
    assert.ok(relay.passed < bytes * 1.02 + breaks.length * LOST_BYTES, `${sent} MiB were sent of ${size}`);
    const db = new DatabaseSync(join(there, "db"), { readOnly: true });
    assert.equal(db.prepare("PRAGMA integrity_check").get()?.["integrity_check"], "ok");
    db.close();
  });
});
