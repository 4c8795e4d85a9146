import assert from "node:assert/strict";
import { once } from "node:events";
import { cpSync, existsSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import { join } from "node:path";
import { suite } from "node:test";
import { systemClock } from "#core/clock.ts";
import type { Election } from "../commands.ts";
import { BODY_HEADER, sha256 } from "../credentials/credentials.ts";
import { SharedKey } from "../credentials/shared-key.ts";
import { Application, look, open } from "../database/fixtures.ts";
import { RowLeases } from "../election/row-leases.ts";
import { SqliteRows } from "../election/sqlite-rows.ts";
import { NodeClient } from "../node-client.ts";
import { type Scene, same, sent, story, until } from "./fixtures.ts";

suite("replication nodes", () => {
  story("a replica follows its primary, and both report every transaction as specified", async (scene) => {
    const [here, there] = [scene.dir(), scene.dir()];
    const primary = await scene.start(here, { kind: "primary" });
    const replica = await scene.start(there, { kind: "join", url: primary.url });
    const [events, heard] = [scene.listen(primary.url), scene.listen(replica.url)];
    await until("both readers are greeted", () => events.length > 0 && heard.length > 0);
    await until("the replica is connected", () => primary.node.streams.replicas.length === 1);
    const app = await scene.app(here);
    for (let i = 0; i < 20; i++) await app.write();
    await until("20 entries", () => existsSync(join(there, "db")) && look(join(there, "db")).entries === 20);
    await until("the same position", same(primary, replica));

    assert.deepEqual(events[0], { type: "init", data: { isPrimary: true } });
    const last = primary.node.directory.get("db")?.position.txid ?? 0;
    await until("all events", () => events.length > last && heard.at(-1)?.data["txID"] === events.at(-1)?.data["txID"]);
    const ids = events.slice(1).map((event) => Number(`0x${String(event.data["txID"])}`));
    assert.deepEqual(
      ids,
      ids.map((_, i) => i + 1),
    );
    const event = events.at(-1);
    assert.equal(event?.type, "tx");
    assert.equal(event.db, "db");
    assert.match(String(event.data["txID"]), /^[0-9a-f]{16}$/);
    assert.match(String(event.data["postApplyChecksum"]), /^[0-9a-f]{16}$/);
    assert.match(String(event.data["timestamp"]), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
    assert.deepEqual(Object.keys(event.data), ["txID", "postApplyChecksum", "pageSize", "commit", "timestamp"]);
    assert.deepEqual(heard.at(-1), event);
    const hostname = new URL(primary.url).host;
    const changes = heard.filter(({ type }) => type !== "tx").map(({ data }) => data);
    assert.deepEqual(changes.at(-1), { isPrimary: false, hostname });
    assert.equal(readFileSync(join(there, ".primary"), "utf8"), `${hostname}\n`);
    assert.ok(!existsSync(join(here, ".primary")));
    const file = join(there, "db-pos");
    const position = (): string => (existsSync(file) ? readFileSync(file, "utf8") : "");
    await until("the position file", () => position().startsWith(String(event.data["txID"])));
    app.close();
    rmSync(join(here, "db"), { force: true });
    await until("the deletion is heard of", () => heard.at(-1)?.data["commit"] === 0);
    for (const dir of [here, there]) await until("it leaves no position", () => !existsSync(join(dir, "db-pos")));
  });

  story("a replica reports its lag as soon as it has a snapshot", async (scene) => {
    const [here, there] = [scene.dir(), scene.dir()];
    await scene.app(here);
    // A second of the primary's takes a quarter of an hour: no heartbeat comes. The replica has just begun to count.
    const slow = { ...systemClock, monotonic: () => systemClock.monotonic() / 1000 };
    const began_ms = systemClock.monotonic();
    const fresh = { ...systemClock, monotonic: () => (systemClock.monotonic() - began_ms) / 1000 };
    const primary = await scene.start(here, { kind: "primary" }, { clock: slow });
    const replica = await scene.start(there, { kind: "join", url: primary.url }, { clock: fresh });
    await until("the copy", same(primary, replica));
    await until(".lag", () => existsSync(join(there, ".lag")));
    assert.match(readFileSync(join(there, ".lag"), "utf8"), /^\d+\n$/);
  });

  story("a restarted replica resumes without a snapshot", async (scene) => {
    const [here, there] = [scene.dir(), scene.dir()];
    const primary = await scene.start(here, { kind: "primary" });
    const app = await scene.app(here);
    const first = await scene.start(there, { kind: "join", url: primary.url });
    await until("the first copy", () => same(primary, first)() && sent(primary) === 1);
    await first.close();
    for (let i = 0; i < 10; i++) await app.write();
    const again = await scene.start(there, { kind: "join", url: primary.url });
    await until("caught up", () => same(primary, again)() && look(join(there, "db")).entries === 10);
    assert.equal(sent(primary), 1);
  });

  story("a replica whose log lost more than SQLite's in a power cut catches up without a snapshot", async (scene) => {
    const [here, there] = [scene.dir(), scene.dir()];
    const primary = await scene.start(here, { kind: "primary" });
    const app = await scene.app(here);
    const first = await scene.start(there, { kind: "join", url: primary.url });
    await until("the first copy", () => same(primary, first)() && sent(primary) === 1);
    await first.close();
    for (let i = 0; i < 10; i++) await app.write();
    const theirs = primary.node.directory.get("db");
    assert.ok(theirs);
    const dir = first.node.directory.stateDir("db");
    const { database } = open(there, "db", { dir });
    const before = database.position.txid;
    const lost = scene.dir();
    cpSync(join(dir, "log"), lost, { recursive: true });
    await until("all of it is captured", () => theirs.position.txid === before + 10);
    const files = Array.from({ length: 10 }, (_, i) => Buffer.from(theirs.log.read(before + 1 + i) ?? ""));
    database.apply(files, 1);
    database.abandon();
    rmSync(join(dir, "log"), { recursive: true });
    cpSync(lost, join(dir, "log"), { recursive: true });
    const again = await scene.start(there, { kind: "join", url: primary.url });
    await app.write();
    await until("caught up", () => same(primary, again)() && look(join(there, "db")).entries === 11);
    assert.equal(sent(primary), 1);
    assert.equal(again.node.metrics.dropped, 0);
    assert.equal(again.node.directory.get("db")?.position.txid, before + 11);
  });

  // The three ways in which a replica can differ from its primary.
  for (const [shape, here_writes, there_writes, dropped] of [
    ["at the same transaction with another checksum", 2, 2, 2],
    ["ahead of its primary", 0, 3, 3],
    ["behind, with another state before", 5, 1, 1],
  ] as const) {
    story(
      `a replica that is ${shape} is healed, and its own transactions are counted and copied aside (R2)`,
      async (scene) => {
        const [here, there] = [scene.dir(), scene.dir()];
        const app = await scene.app(here);
        const primary = await scene.start(here, { kind: "primary" });
        const first = await scene.start(there, { kind: "join", url: primary.url });
        await until("the first copy", () => same(primary, first)() && sent(primary) === 1);
        await first.close();
        for (let i = 0; i < here_writes; i++) await app.write();
        // An application that writes while the node is not there to stop it.
        const local = await scene.app(there);
        for (let i = 0; i < there_writes; i++) await local.write(17);
        const again = await scene.start(there, { kind: "join", url: primary.url });
        await until("healed", () => same(primary, again)() && look(join(there, "db")).entries === here_writes);
        assert.equal(again.node.metrics.dropped, dropped);
        const [kept = ""] = readdirSync(join(there, ".replication", "aside"));
        assert.equal(look(join(there, ".replication", "aside", kept)).entries, there_writes);
      },
    );
  }

  story("without the key only events, info and metrics are served", async (scene) => {
    const [here, there] = [scene.dir(), scene.dir()];
    await scene.app(here);
    const primary = await scene.start(here, { kind: "primary" }, { credentials: new SharedKey("one") });
    const stranger = await scene.start(
      there,
      { kind: "join", url: primary.url },
      { credentials: new SharedKey("two") },
    );
    const friend = await scene.start(
      scene.dir(),
      { kind: "join", url: primary.url },
      { credentials: new SharedKey("one") },
    );
    await until("the friend has it", same(primary, friend));
    assert.equal(stranger.node.directory.count, 0);
    assert.equal((await fetch(`${primary.url}/export?name=db`)).status, 401);
    assert.equal((await fetch(`${primary.url}/promote`, { method: "POST" })).status, 401);
    assert.equal((await fetch(`${primary.url}/metrics`)).status, 200);
    assert.equal(((await new NodeClient(primary.url, systemClock).info()) as { isPrimary: boolean }).isPrimary, true);
  });

  story("the signature covers the body: a modified import is refused", async (scene) => {
    const here = scene.dir();
    const app = await scene.app(here);
    await app.write();
    const credentials = new SharedKey("one");
    const primary = await scene.start(here, { kind: "primary" }, { credentials });
    const client = new NodeClient(primary.url, systemClock, new SharedKey("one"));
    const file = join(scene.dir(), "copy.db");
    await client.exportTo("db", file);
    assert.ok(await client.importFrom("again", file));
    assert.equal(look(join(here, "again")).entries, 1);
    // The same signature with another body: what somebody on the way could send.
    const signed = await credentials.sign(
      { method: "POST", path: "/import?name=third", body_sha256: sha256(readFileSync(file)) },
      systemClock.now(),
    );
    const headers = { ...signed.headers, [BODY_HEADER]: sha256(readFileSync(file)) };
    const body = readFileSync(file).fill(0, 100);
    const answer = await fetch(`${primary.url}/import?name=third`, { method: "POST", headers, body });
    assert.equal(answer.status, 401, await answer.text());
    assert.ok(!existsSync(join(here, "third")));
  });

  story("without a key a node listens on loopback only, and refuses browsers' cross-origin requests", async (scene) => {
    const primary = await scene.start(scene.dir(), { kind: "primary" });
    const post = (headers: Record<string, string>): Promise<number> =>
      new Promise((done) => {
        const asked = request(`${primary.url}/positions`, { method: "POST", headers }, ({ statusCode = 0 }) =>
          done(statusCode),
        );
        asked.end('{"databases":{}}');
      });
    assert.equal(await post({}), 200);
    assert.equal(await post({ origin: "http://example.com" }), 403);
    assert.equal(await post({ host: "example.com" }), 403);
    await assert.rejects(scene.start(scene.dir(), { kind: "primary" }, { host: "0.0.0.0" }), /--key-file/);
    const open = await scene.start(scene.dir(), { kind: "primary" }, { host: "0.0.0.0", trust_network: true });
    assert.equal(open.node.role.kind, "primary");
  });

  story("export returns a database, import stores one, bad requests get clear errors", async (scene) => {
    const here = scene.dir();
    const app = await scene.app(here);
    await app.write();
    const primary = await scene.start(here, { kind: "primary" });
    const file = Buffer.from(await (await fetch(`${primary.url}/export?name=db`)).arrayBuffer());
    assert.equal(file.toString("latin1", 0, 15), "SQLite format 3");
    const sent = await fetch(`${primary.url}/import?name=copy`, { method: "POST", body: file });
    assert.equal(sent.status, 200, await sent.text());
    assert.equal(look(join(here, "copy")).entries, 1);
    const over = await fetch(`${primary.url}/import?name=copy`, { method: "POST", body: file });
    assert.equal(over.status, 200, await over.text());
    const other = new Application(join(scene.dir(), "other"), 8192);
    for (let i = 0; i < 3; i++) other.write();
    other.db.exec("PRAGMA journal_mode = DELETE");
    const small = readFileSync(other.path);
    other.close();
    const resized = await fetch(`${primary.url}/import?name=copy`, { method: "POST", body: small });
    assert.equal(resized.status, 200, await resized.text());
    assert.equal(look(join(here, "copy")).entries, 3, "a file with another page size takes its place");
    const status = async (path: string, init?: RequestInit): Promise<number> =>
      (await fetch(primary.url + path, init)).status;
    assert.equal(await status("/import?name=bad", { method: "POST", body: "nonsense" }), 400);
    assert.equal(await status("/import?name=../x", { method: "POST", body: file }), 422);
    assert.equal(await status("/export?name=none"), 404);
    assert.equal(await status("/export"), 400);
    assert.equal(await status("/events", { method: "POST" }), 405);
    assert.equal(await status("/nothing"), 404);
    assert.equal(await status("/positions", { method: "POST", body: "{" }), 400);
    assert.equal(await status("/promote", { method: "POST" }), 409);
    const hello = { node: "n", hostname: "h:1", term: 99, databases: {} };
    const stale = await fetch(`${primary.url}/stream`, { method: "POST", body: JSON.stringify(hello) });
    assert.equal(stale.status, 409);
    assert.match(await stale.text(), /term 1 is over, 99 was seen/);
  });

  story("of two concurrent imports of one name the second is refused, and the first is complete", async (scene) => {
    const here = scene.dir();
    await (await scene.app(here)).write();
    const primary = await scene.start(here, { kind: "primary" });
    const file = Buffer.from(await (await fetch(`${primary.url}/export?name=db`)).arrayBuffer());
    const url = `${primary.url}/import?name=copy`;
    const first = request(url, { method: "POST" });
    const answered = once(first, "response") as Promise<[IncomingMessage]>;
    first.write(file.subarray(0, 5000));
    await until("the first has begun", () => existsSync(join(here, ".replication", "copy.import")));
    const second = await fetch(url, { method: "POST", body: file });
    assert.equal(second.status, 409, await second.text());
    first.end(file.subarray(5000));
    const [{ statusCode }] = await answered;
    assert.equal(statusCode, 200);
    assert.equal(look(join(here, "copy")).entries, 1);
  });
});

/** Nodes that are elected by one lease. */
function candidates(scene: Scene): () => Election {
  const path = join(scene.dir(), "lease.db");
  return () => {
    const leases = new RowLeases(new SqliteRows(path), systemClock);
    scene.later(() => leases.close());
    return { kind: "lease", leases, candidate: true, renew_ms: 60 };
  };
}

suite("elected nodes", () => {
  story("a node that may lack transactions becomes primary only when forced; the loss is counted", async (scene) => {
    const [here, there] = [scene.dir(), scene.dir()];
    const elected = candidates(scene);
    const app = await scene.app(here);
    const first = await scene.start(here, elected());
    const behind = await scene.start(there, elected());
    await until("both have it", () => same(first, behind)() && behind.node.complete_term === first.node.term);
    const first_txid = first.node.directory.get("db")?.position.txid ?? 0;
    await behind.close();
    await first.close();
    // In the next term the one leads alone, and is lost with what only it has.
    const second = await scene.start(here, elected());
    await until("primary", () => second.node.role.kind === "primary");
    for (let i = 0; i < 3; i++) await app.write();
    const txid = (): number => second.node.directory.get("db")?.position.txid ?? 0;
    await until("all three are captured", () => txid() === first_txid + 3);
    const lost = txid();
    await second.close();

    const alone = await scene.start(there, elected());
    const client = new NodeClient(alone.url, systemClock);
    await assert.rejects(client.promote(), /may lack transactions/);
    assert.equal(alone.node.role.kind, "none");
    await client.promote({ force: true });
    assert.equal(alone.node.role.kind, "primary");
    const had = alone.node.directory.get("db")?.position.txid ?? 0;
    // Not what the other wrote: the same transaction on both would be no difference.
    await (await scene.app(there)).write(17);

    const back = await scene.start(here, elected());
    await until("it follows", () => same(alone, back)() && back.node.role.kind === "replica");
    assert.equal(back.node.metrics.dropped, lost - had);
    assert.equal(look(join(here, "db")).entries, 1);
    const [kept = ""] = readdirSync(join(here, ".replication", "aside"));
    assert.equal(look(join(here, ".replication", "aside", kept)).entries, 3);
  });

  story("promoting a replica loses nothing, and the old primary follows the new one", async (scene) => {
    const dirs = [scene.dir(), scene.dir()] as const;
    const elected = candidates(scene);
    const a = await scene.start(dirs[0], elected());
    await until("the first is primary", () => a.node.role.kind === "primary");
    const app = await scene.app(dirs[0]);
    for (let i = 0; i < 10; i++) await app.write();
    const b = await scene.start(dirs[1], elected());
    await until("the second follows", same(a, b));
    await until("and has everything", () => b.node.complete_term === a.node.term);
    const heard = scene.listen(b.url);
    await until("greeted", () => heard.length === 1);
    await new NodeClient(b.url, systemClock).promote();
    assert.equal(b.node.role.kind, "primary");
    assert.ok(b.node.term > 1);
    assert.throws(() => app.db.exec("BEGIN IMMEDIATE"), /locked/);
    app.close();
    await until("the old one follows", () => a.node.role.kind === "replica" && b.node.streams.replicas.length === 1);
    const next = await scene.app(dirs[1]);
    await next.write();
    await until("caught up", () => same(a, b)() && look(join(dirs[0], "db")).entries === 11);
    next.close();
    assert.deepEqual(
      heard.filter(({ type }) => type !== "tx").map(({ data }) => data),
      [
        { isPrimary: false, hostname: new URL(a.url).host },
        { isPrimary: false, hostname: "" },
        { isPrimary: true, hostname: "" },
      ],
    );
  });

  story("transactions up to a handover are announced by the old primary, without a gap (E2)", async (scene) => {
    const dirs = [scene.dir(), scene.dir()] as const;
    const elected = candidates(scene);
    const a = await scene.start(dirs[0], elected());
    await until("the first is primary", () => a.node.role.kind === "primary");
    const app = await scene.app(dirs[0]);
    await app.write();
    const b = await scene.start(dirs[1], elected());
    await until("the second has everything", () => same(a, b)() && b.node.complete_term === a.node.term);
    const heard = scene.listen(a.url);
    await until("greeted", () => heard.length === 1);
    const before = a.node.directory.get("db")?.position.txid ?? 0;
    for (let i = 0; i < 20; i++) await app.write();
    await new NodeClient(b.url, systemClock).promote();
    app.close();
    await until("the old one follows", () => a.node.role.kind === "replica" && b.node.streams.replicas.length === 1);
    const txids = heard.filter(({ type }) => type === "tx").map(({ data }) => Number(`0x${String(data["txID"])}`));
    assert.deepEqual(
      txids,
      Array.from({ length: 20 }, (_, i) => before + 1 + i),
    );
  });

  story("a lease renewed at the last moment loses no events", async (scene) => {
    const dir = scene.dir();
    const app = await scene.app(dir);
    await app.write();
    const { node, url } = await scene.start(dir, { kind: "primary" });
    const before = node.directory.get("db")?.position.txid ?? 0;
    // From the first transaction on the node may not act as primary, until it has checked often enough to notice.
    let asked = 0;
    await node.becomePrimary(node.term, () => {
      const late = (node.directory.get("db")?.position.txid ?? 0) > before && asked++ < 30;
      return late ? Number.NEGATIVE_INFINITY : Number.POSITIVE_INFINITY;
    });
    const heard = scene.listen(url);
    await until("greeted", () => heard.length === 1);
    for (let i = 0; i < 5; i++) await app.write();
    await until("all events arrive", () => heard.length === 6);
    assert.ok(asked >= 30);
    const txids = heard.slice(1).map(({ data }) => Number(`0x${String(data["txID"])}`));
    assert.deepEqual(
      txids,
      [1, 2, 3, 4, 5].map((n) => before + n),
    );
  });
});
