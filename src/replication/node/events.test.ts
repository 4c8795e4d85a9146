/** GET /events, line by line as the specification has it. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, renameSync, rmSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { suite } from "node:test";
import type { RunningNode } from "../commands.ts";
import { type Line, type Scene, same, story, until } from "./fixtures.ts";

/** Events about transactions, and about the status. */
const transactions = (lines: readonly Line[]): Line[] => lines.filter(({ type }) => type === "tx");
const statuses = (lines: readonly Line[]): unknown[] =>
  lines.filter(({ type }) => type !== "tx").map(({ type, data }) => [type, data]);

/** The raw bytes of a stream, for a hand-written request. */
async function raw(scene: Scene, { url }: RunningNode, head: string): Promise<() => string> {
  const socket = connect(Number(new URL(url).port), "127.0.0.1");
  scene.later(() => socket.destroy());
  await once(socket, "connect");
  let text = "";
  socket.setEncoding("utf8").on("data", (part: string) => {
    text += part;
  });
  socket.on("error", () => undefined);
  socket.write(head);
  return () => text;
}

suite("GET /events", () => {
  story("init is always first, with isPrimary or the primary's hostname", async (scene) => {
    const primary = await scene.start(scene.dir(), { kind: "primary" });
    const replica = await scene.start(scene.dir(), { kind: "join", url: primary.url });
    await until("connected", () => replica.node.events.status.hostname !== undefined);
    const [events, heard] = [scene.listen(primary.url), scene.listen(replica.url)];
    await until("greeted", () => events.length > 0 && heard.length > 0);
    assert.deepEqual(events, [{ type: "init", data: { isPrimary: true } }]);
    assert.deepEqual(heard, [{ type: "init", data: { isPrimary: false, hostname: new URL(primary.url).host } }]);
    await primary.close();
    await until("the connection is lost", () => replica.node.events.status.hostname === undefined);
    const alone = scene.listen(replica.url);
    await until("greeted", () => alone.length > 0);
    assert.deepEqual(alone, [{ type: "init", data: { isPrimary: false, hostname: "" } }], "no primary is known");
  });

  story("primaryChange reports connecting to a primary and losing it, once each", async (scene) => {
    const primary = await scene.start(scene.dir(), { kind: "primary" });
    const { port } = new URL(primary.url);
    const replica = await scene.start(scene.dir(), { kind: "join", url: primary.url });
    await until("connected", () => replica.node.events.status.hostname !== undefined);
    const heard = scene.listen(replica.url);
    await until("greeted", () => heard.length > 0);
    await primary.close();
    await until("lost", () => heard.length === 2);
    // It retries meanwhile, and retries are no events.
    const before = replica.node.metrics.disconnects;
    await until("several attempts", () => replica.node.metrics.disconnects >= before + 3);
    await scene.start(scene.dir(), { kind: "primary" }, { port: Number(port) });
    await until("connected again", () => heard.length === 3);
    const hostname = `127.0.0.1:${port}`;
    assert.deepEqual(statuses(heard), [
      ["init", { isPrimary: false, hostname }],
      ["primaryChange", { isPrimary: false, hostname: "" }],
      ["primaryChange", { isPrimary: false, hostname }],
    ]);
  });

  story("primaryChange has a hostname when the node itself becomes primary or stops being it", async (scene) => {
    const { url, node } = await scene.start(scene.dir(), { kind: "primary" });
    const events = scene.listen(url);
    await until("greeted", () => events.length > 0);
    await node.fence();
    await node.becomePrimary(node.term + 1);
    await until("the events arrive", () => events.length === 3);
    assert.deepEqual(statuses(events), [
      ["init", { isPrimary: true }],
      ["primaryChange", { isPrimary: false, hostname: "" }],
      ["primaryChange", { isPrimary: true, hostname: "" }],
    ]);
  });

  story("tx has its fields in order, the database size, and on a replica the primary's time", async (scene) => {
    const [here, there] = [scene.dir(), scene.dir()];
    const primary = await scene.start(here, { kind: "primary" });
    const replica = await scene.start(there, { kind: "join", url: primary.url });
    const [events, heard] = [scene.listen(primary.url), scene.listen(replica.url)];
    await until("greeted", () => events.length > 0 && heard.length > 0);
    await until("connected", () => primary.node.streams.replicas.length === 1);
    const app = await scene.app(here, 1024);
    for (let i = 0; i < 5; i++) await app.write(3000);
    await until("the same position", same(primary, replica));
    const position = primary.node.directory.get("db")?.position.txid ?? 0;
    const all = (lines: Line[]): boolean => Number(`0x${String(lines.at(-1)?.data["txID"])}`) === position;
    await until("all events arrive", () => all(events) && all(heard));
    for (const line of transactions(events)) {
      assert.deepEqual(Object.keys(line), ["type", "db", "data"]);
      assert.deepEqual(Object.keys(line.data), ["txID", "postApplyChecksum", "pageSize", "commit", "timestamp"]);
      assert.equal(line.data["pageSize"], 1024);
      assert.ok(Number.isInteger(line.data["commit"]));
      assert.equal(new Date(String(line.data["timestamp"])).toISOString(), line.data["timestamp"]);
    }
    const last = events.at(-1);
    const file = await (await fetch(`${replica.url}/export?name=db`)).arrayBuffer();
    assert.equal(Number(last?.data["commit"]) * 1024, file.byteLength);
    assert.deepEqual(transactions(heard).at(-1), last);
    const position_text = `${String(last?.data["txID"])}/${String(last?.data["postApplyChecksum"])}`;
    const { databases } = (await (await fetch(`${replica.url}/info`)).json()) as {
      databases: Record<string, string>;
    };
    assert.equal(databases["db"], position_text);
  });

  story("each database has its own count and any name; a deleted one ends with commit 0", async (scene) => {
    const here = scene.dir();
    const primary = await scene.start(here, { kind: "primary" });
    const events = scene.listen(primary.url);
    await until("greeted", () => events.length > 0);
    const names = ['a "quoted" name', "naïve – ünï.sqlite"];
    for (const name of names) {
      // Made beside it and moved there: it is found whole, as one transaction.
      const path = join(here, ".replication", "made");
      const db = new DatabaseSync(path);
      db.exec("PRAGMA journal_mode = WAL; CREATE TABLE t (x)");
      db.close();
      renameSync(path, join(here, name));
      await until(`${name} is announced`, () => events.some(({ db: event_name }) => event_name === name));
    }
    const first = events.filter(({ db }) => db === names[0]);
    assert.deepEqual(
      first.map(({ data }) => data["txID"]),
      ["0000000000000001"],
    );
    const path = join(here, names[0] ?? "");
    for (const end of ["", "-wal", "-shm"]) if (existsSync(path + end)) rmSync(path + end);
    await until("the deletion is announced", () => events.at(-1)?.data["commit"] === 0);
    const last = events.at(-1);
    assert.deepEqual([last?.db, last?.data["txID"]], [names[0], "0000000000000002"]);
    assert.equal(last?.data["postApplyChecksum"], "8000000000000000");
  });

  story(
    "each event is one JSON line, sent at once, to HTTP/1.0 clients too; other methods are refused",
    async (scene) => {
      const here = scene.dir();
      const primary = await scene.start(here, { kind: "primary" });
      const old = await raw(scene, primary, "GET /events HTTP/1.0\r\n\r\n");
      await until("greeted", () => old().includes("\r\n\r\n{"));
      await (await scene.app(here)).write();
      const lines = (): string[] => old().split("\r\n\r\n")[1]?.split("\n") ?? [];
      await until("the events arrive", () => lines().length > 2);
      assert.equal(lines().at(-1), "", "a line ends with a line feed, and no half line waits");
      for (const line of lines().slice(0, -1)) assert.equal(JSON.stringify(JSON.parse(line)), line);

      for (const method of ["POST", "PUT", "DELETE", "PATCH"]) {
        const { status, headers } = await fetch(`${primary.url}/events`, { method });
        assert.deepEqual([method, status, headers.get("allow")], [method, 405, "GET"]);
      }
      const head = await fetch(`${primary.url}/events`, { method: "HEAD" });
      assert.deepEqual([head.status, head.headers.get("content-type")], [200, "application/json"]);
      assert.equal(await head.text(), "", "it ends");
      assert.equal(primary.node.events.readers, 1, "only the connected reader");
    },
  );

  story("a reader that does not read is cut off and counted, and costs the others nothing (E1)", async (scene) => {
    const { url, node } = await scene.start(scene.dir(), { kind: "primary" });
    const socket = connect(Number(new URL(url).port), "127.0.0.1");
    scene.later(() => socket.destroy());
    socket.on("error", () => undefined);
    socket.pause().write("GET /events HTTP/1.1\r\nHost: x\r\n\r\n");
    const good = scene.listen(url);
    await until("both are connected", () => good.length > 0 && node.events.readers === 2);
    // The kernel buffers some megabytes for a reader that does not read before the node notices anything.
    const name = "d".repeat(190);
    let sent = 0;
    while (node.events.cut === 0 && sent < 200_000) {
      const infos = Array.from({ length: 100 }, () => {
        sent++;
        return { position: { txid: sent, checksum: 1n << 63n }, page_size: 4096, commit: 1, timestamp_ms: 0 };
      });
      node.events.transactions(name, infos);
      await until("the good one has read it", () => good.length > sent);
    }
    assert.equal(node.events.cut, 1);
    assert.equal(node.events.readers, 1);
    assert.deepEqual(
      transactions(good).map(({ data }) => Number(`0x${String(data["txID"])}`)),
      Array.from({ length: sent }, (_, i) => i + 1),
    );
    assert.match(node.metrics.text(), /^hangar_db_event_readers_cut_total 1$/m);
  });

  story("a reader that connects later gets every event from then on, and none from before", async (scene) => {
    const here = scene.dir();
    const primary = await scene.start(here, { kind: "primary" });
    const app = await scene.app(here);
    const steady = scene.listen(primary.url);
    await until("greeted", () => steady.length > 0);
    for (let round = 0; round < 10; round++) {
      await app.write();
      const late = scene.listen(primary.url);
      await app.write();
      await until("greeted", () => late.length > 0);
      await app.write();
      const position = (): string | undefined => {
        const txid = primary.node.directory.get("db")?.position.txid;
        return txid?.toString(16).padStart(16, "0");
      };
      await until("both know of the last", () =>
        [steady, late].every((lines) => lines.at(-1)?.data["txID"] === position()),
      );
      const heard = transactions(late).map(({ data }) => data["txID"]);
      assert.deepEqual(
        heard,
        transactions(steady)
          .map(({ data }) => data["txID"])
          .slice(-heard.length),
      );
    }
  });
});
