import assert from "node:assert/strict";
import { suite } from "node:test";
import { systemClock } from "#core/clock.ts";
import { look } from "../database/fixtures.ts";
import { NodeClient } from "../node-client.ts";
import { story, until } from "./fixtures.ts";

interface Waited {
  status: number;
  body: Record<string, unknown> & { message?: string; status?: string };
}

async function wait(url: string, query: string): Promise<Waited> {
  const response = await fetch(`${url}/wait?${query}`);
  return { status: response.status, body: (await response.json()) as Waited["body"] };
}

suite("GET /wait", () => {
  story("the position after a write includes it, and a replica at that position shows it", async (scene) => {
    const [here, there] = [scene.dir(), scene.dir()];
    const primary = await scene.start(here, { kind: "primary" });
    const replica = await scene.start(there, { kind: "join", url: primary.url });
    const app = await scene.app(here);
    for (let n = 1; n <= 50; n++) {
      await app.write();
      const after = await wait(primary.url, "db=db");
      assert.equal(after.status, 200);
      assert.equal(after.body["isPrimary"], true);
      const there_too = await wait(replica.url, `db=db&txid=${String(after.body["txid"])}&timeout=60s`);
      assert.deepEqual([there_too.status, there_too.body["isPrimary"]], [200, false]);
      assert.ok(look(`${there}/db`).entries >= n, `write ${n} is on the replica`);
      // Nothing else was written: the position is that of this write, checksum and all.
      assert.equal(there_too.body["position"], after.body["position"]);
    }
  });

  story("the position includes all writes that were not captured yet", async (scene) => {
    const here = scene.dir();
    const primary = await scene.start(here, { kind: "primary" });
    const app = await scene.app(here);
    const before = await wait(primary.url, "db=db");
    for (let n = 0; n < 3000; n++) await app.write();
    const after = await wait(primary.url, "db=db");
    assert.equal(Number(`0x${String(after.body["txid"])}`) - Number(`0x${String(before.body["txid"])}`), 3000);
  });

  story("a transaction that does not arrive is 408 with the current position", async (scene) => {
    const here = scene.dir();
    const primary = await scene.start(here, { kind: "primary" });
    await scene.app(here);
    const { body: now } = await wait(primary.url, "db=db");
    const { status, body } = await wait(primary.url, "db=db&txid=ffff&timeout=20ms");
    assert.deepEqual([status, body.status], [408, "wait_timeout"]);
    assert.match(JSON.stringify(body), new RegExp(`is at ${String(now["position"])}`));
  });

  story("a transaction that arrives ends the wait", async (scene) => {
    const here = scene.dir();
    const primary = await scene.start(here, { kind: "primary" });
    const app = await scene.app(here);
    const { body: now } = await wait(primary.url, "db=db");
    const next = (Number(`0x${String(now["txid"])}`) + 1).toString(16);
    const waiting = wait(primary.url, `db=db&txid=${next}&timeout=60s`);
    await until("it waits", () => primary.node.waits.count === 1);
    await app.write();
    assert.equal((await waiting).status, 200);
    assert.equal(primary.node.waits.count, 0);
  });

  story("a position that is not in the database's history is 409 at once", async (scene) => {
    const here = scene.dir();
    const primary = await scene.start(here, { kind: "primary" });
    const app = await scene.app(here);
    await app.write();
    const { body } = await wait(primary.url, "db=db");
    const [txid = "", checksum = ""] = String(body["position"]).split("/");
    assert.equal((await wait(primary.url, `db=db&txid=${txid}/${checksum}`)).status, 200);
    const other = `${checksum.slice(0, -1)}${checksum.endsWith("0") ? "1" : "0"}`;
    const refused = await wait(primary.url, `db=db&txid=${txid}/${other}`);
    assert.deepEqual([refused.status, refused.body.status], [409, "transaction_lost"]);
  });

  story("invalid parameters are refused with the allowed values", async (scene) => {
    const primary = await scene.start(scene.dir(), { kind: "primary" });
    const replica = await scene.start(scene.dir(), { kind: "join", url: primary.url });
    const cases: [url: string, query: string, status: number, text: RegExp][] = [
      [primary.url, "", 400, /db is missing/],
      [primary.url, "db=../etc", 400, /cannot be the name of a database/],
      [primary.url, "db=x&txid=zz", 400, /txid .* such as 00000000000000ff/],
      [primary.url, "db=x&txid=fffffffffffffffff", 400, /txid/],
      [primary.url, "db=x&timeout=soon", 400, /timeout .* such as 500ms or 5s/],
      [primary.url, "db=x&timeout=2h", 400, /at most 60s/],
      [primary.url, "db=x&timeout=1s&timeout=2s", 400, /timeout .* once/],
      [primary.url, "db=x&tixd=1", 400, /tixd .* db, txid, timeout, ack/],
      [primary.url, "db=x&ack=many", 400, /ack must be none, one, or a number/],
      [primary.url, "db=x&ack=100", 400, /ack must be none, one, or a number/],
      [primary.url, "db=x", 404, /there is no database x/],
      [replica.url, "db=x&txid=1&timeout=20ms", 408, /x is not here yet/],
    ];
    for (const [url, query, status, text] of cases) {
      const answer = await wait(url, query);
      assert.equal(answer.status, status, `${query}: ${JSON.stringify(answer.body)}`);
      assert.match(JSON.stringify(answer.body), text, query);
    }
  });

  story("a client that disconnects ends its wait", async (scene) => {
    const here = scene.dir();
    const primary = await scene.start(here, { kind: "primary" });
    await scene.app(here);
    const client = new AbortController();
    const waiting = fetch(`${primary.url}/wait?db=db&txid=ffff&timeout=60s`, { signal: client.signal }).catch(() => 0);
    await until("it waits", () => primary.node.waits.count === 1);
    client.abort();
    await waiting;
    await until("it is dropped", () => primary.node.waits.count === 0);
  });

  story("the client repeats requests to wait longer than one may", async (scene) => {
    const here = scene.dir();
    const primary = await scene.start(here, { kind: "primary" });
    await scene.app(here);
    const client = new NodeClient(primary.url, systemClock);
    const waited = (await client.wait({ db: "db" })) as { position: string };
    assert.match(waited.position, /^[0-9a-f]{16}\/[0-9a-f]{16}$/);
    await assert.rejects(client.wait({ db: "db", txid: "ffff", timeout: "10ms" }), /ffff/);
  });
});
