import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, readdirSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { join } from "node:path";
import { suite } from "node:test";
import { look } from "../database/fixtures.ts";
import { type Scene, same, story, until } from "./fixtures.ts";

interface Way {
  url: string;
  /** Bytes from the node that have passed. */
  passed: number;
}

/** A way to a node that breaks after so many bytes of one connection, as often as there are figures. */
async function breakingWay(scene: Scene, url: string, after: number[]): Promise<Way> {
  const way: Way = { url: "", passed: 0 };
  const server = createServer((client) => {
    const node = connect(Number(new URL(url).port), "127.0.0.1");
    let bytes = 0;
    for (const socket of [client, node]) {
      socket.on("error", () => undefined);
      socket.on("close", () => node.destroy());
    }
    node.on("close", () => client.end());
    client.pipe(node);
    node.on("data", (part: Buffer) => {
      bytes += part.length;
      way.passed += part.length;
      if (bytes < (after[0] ?? Number.POSITIVE_INFINITY)) {
        if (!client.write(part)) node.pause();
        return;
      }
      // What came until here arrives; nothing after it does.
      after.shift();
      node.destroy();
      client.end(part);
    });
    client.on("drain", () => node.resume());
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  scene.later(() => server.close());
  way.url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return way;
}

const MIB = 1024 * 1024;

suite("a snapshot that breaks off (R14)", () => {
  story(
    "goes on where it stopped, although the database was written to, and although it breaks again",
    async (scene) => {
      const [here, there] = [scene.dir(), scene.dir()];
      const app = await scene.app(here);
      app.db.exec("CREATE TABLE large (n INTEGER PRIMARY KEY, pad BLOB)");
      app.db.exec(
        "WITH RECURSIVE s(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM s WHERE v < 3500) INSERT INTO large SELECT v, randomblob(8000) FROM s",
      );
      const primary = await scene.start(here, { kind: "primary" });
      const bytes = 4096 * Number(app.db.prepare("PRAGMA page_count").get()?.["page_count"]);
      assert.ok(bytes > 20 * MIB);
      const way = await breakingWay(scene, primary.url, [20 * MIB, 6 * MIB]);
      const broke = (): number => scene.said.filter((line) => line.includes("blocks of it already")).length;
      const replica = await scene.start(there, { kind: "join", url: way.url });
      await until("it broke once", () => existsSync(join(there, ".replication", "db.incoming")) || broke() > 0);
      await app.write();
      await until("it went on twice", () => broke() === 2);
      await until("the replica has all of it", same(primary, replica));
      assert.equal(look(join(there, "db")).integrity, "ok");
      // Begun anew each time, it would have been 26 MiB more than the database has.
      assert.ok(way.passed < bytes + 18 * MIB, `${way.passed / MIB} MiB were sent of ${bytes / MIB}`);
      assert.deepEqual(
        readdirSync(join(there, ".replication")).filter((name) => name.endsWith(".incoming")),
        [],
      );
    },
  );
});
