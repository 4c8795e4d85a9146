import assert from "node:assert/strict";
import { once } from "node:events";
import {
  createServer,
  request as httpRequest,
  type IncomingMessage,
  type RequestListener,
  type Server,
} from "node:http";
import { type AddressInfo, connect } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import type { RunningNode, StartOptions } from "../commands.ts";
import type { LeaseStore } from "../election/lease-store.ts";
import { RowLeases } from "../election/row-leases.ts";
import { SqliteRows } from "../election/sqlite-rows.ts";
import { type Scene, same, story, until } from "../node/fixtures.ts";
import { hex16 } from "../position.ts";
import { PROXY_OPTIONS, proxyIn } from "./flags.ts";
import { txidOf } from "./http-proxy.ts";
import { mayRepeat, patternOf, Router } from "./rules.ts";

suite("request routing", () => {
  test("requests are routed by method and by path patterns", () => {
    const router = new Router({ local: ["/static/*", "*.css", "/health"], primary: ["/visit", "/api/*/now"] });
    const cases: [method: string, target: string, kind: string][] = [
      ["GET", "/", "read"],
      ["HEAD", "/notes", "read"],
      ["OPTIONS", "/notes", "read"],
      ["POST", "/notes", "write"],
      ["PUT", "/notes/1", "write"],
      ["DELETE", "/notes/1", "write"],
      ["PROPFIND", "/notes", "write"],
      ["POST", "/static/x", "local"],
      ["GET", "/a/b.css?v=1", "local"],
      ["GET", "/a/b.cssx", "read"],
      ["GET", "/b?x=/static/y.css", "read"],
      ["GET", "/health", "local"],
      ["GET", "/healthy", "read"],
      ["GET", "/visit?x=1", "write"],
      ["GET", "/api/v1/now", "write"],
    ];
    for (const [method, target, kind] of cases)
      assert.equal(router.kindOf(method, target), kind, `${method} ${target}`);
    assert.throws(() => patternOf("static/*"), /begins with \/ or \*/);
  });

  test("only idempotent requests are retried", () => {
    for (const method of ["GET", "PUT", "DELETE"]) assert.equal(mayRepeat(method, undefined), true);
    assert.equal(mayRepeat("POST", undefined), false);
    assert.equal(mayRepeat("POST", ""), false);
    assert.equal(mayRepeat("PATCH", "key"), true);
  });

  test("a transaction id is read from the header or the cookie, and invalid ones are ignored", () => {
    assert.equal(txidOf({ headers: { "hangar-txid": "ff" } }), 255);
    assert.equal(txidOf({ headers: { cookie: "a=b; __txid=0000000000000010; c" } }), 16);
    assert.equal(txidOf({ headers: { cookie: "x__txid=10" } }), undefined);
    for (const nonsense of ["", "-1", "0x10", "xyz", "f".repeat(17), "f".repeat(16)])
      assert.equal(txidOf({ headers: { "hangar-txid": nonsense } }), undefined, nonsense);
  });

  test("invalid options are named", () => {
    const none = Object.fromEntries(Object.keys(PROXY_OPTIONS).map((name) => [name, undefined]));
    const base = { "proxy-listen": "127.0.0.1:0", "proxy-app": "http://127.0.0.1:1", "proxy-db": "db" };
    assert.deepEqual(proxyIn(none, undefined), {});
    assert.throws(() => proxyIn({ "proxy-db": "db" }, undefined), /--proxy-db needs --proxy-listen/);
    assert.throws(() => proxyIn({ "proxy-listen": "8000" }, undefined), /HOST:PORT/);
    assert.throws(() => proxyIn({ "proxy-listen": ":1" }, undefined), /needs --proxy-app/);
    assert.throws(() => proxyIn({ ...base, "proxy-app": "localhost:8080" }, undefined), /--proxy-app/);
    assert.throws(() => proxyIn({ ...base, "proxy-db": "../x" }, undefined), /--proxy-db/);
    assert.throws(() => proxyIn({ ...base, "proxy-local": "x*" }, undefined), /begins with/);
    assert.throws(() => proxyIn({ ...base, "proxy-queue": "long" }, undefined), /--proxy-queue/);
    assert.equal(proxyIn({ ...base, "proxy-listen": "0.0.0.0:81" }, "http://a:20202").proxy?.advertise, "http://a:81");
  });
});

async function serve(scene: Scene, listener: RequestListener): Promise<{ server: Server; app: URL }> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  scene.later(() => {
    server.closeAllConnections();
    server.close();
  });
  return { server, app: new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}`) };
}

const place = (app: URL, queue_ms = 60_000): Required<Pick<StartOptions, "proxy">> => ({
  proxy: { host: "127.0.0.1", port: 0, app, db: "db", local: [], primary: [], queue_ms },
});

const urlOf = ({ node }: RunningNode): string => node.proxy?.url ?? "";

/** A lease that no node ever gets. */
const NO_LEASES: LeaseStore = {
  acquire: () => Promise.resolve(undefined),
  renew: () => Promise.resolve(false),
  release: () => Promise.resolve(),
  holder: () => Promise.resolve(undefined),
  close: () => Promise.resolve(),
};

const codeIn = async (response: Response): Promise<unknown> => ((await response.json()) as { status: unknown }).status;

suite("HTTP proxy of a node", () => {
  story("without a primary reads are served, and writes wait, then fail without effect", async (scene) => {
    let writes = 0;
    const { app } = await serve(scene, (request, response) => {
      if (request.method === "POST") writes++;
      response.end("hello");
    });
    const election = { kind: "lease", leases: NO_LEASES, candidate: true } as const;
    const node = await scene.start(scene.dir(), election, place(app, 30));
    assert.equal(await (await fetch(urlOf(node))).text(), "hello");
    const refused = await fetch(urlOf(node), { method: "POST", body: "x" });
    assert.deepEqual([refused.status, await codeIn(refused), writes], [503, "no_primary", 0]);
    assert.equal(refused.headers.get("retry-after"), "1");
  });

  story("a write waits for a primary, whichever node that is", async (scene) => {
    const { app } = await serve(scene, (_, response) => response.end("done"));
    const leases = { ...NO_LEASES };
    const election = { kind: "lease", leases, candidate: true, ttl_ms: 1000, renew_ms: 10 } as const;
    const node = await scene.start(scene.dir(), election, place(app));
    const waiting = fetch(urlOf(node), { method: "POST", body: "x" });
    await until("it waits", () => node.proxy?.waiting === 1);
    leases.renew = () => Promise.resolve(true);
    leases.acquire = ({ node: id, url }) => Promise.resolve({ node: id, url, term: 1 });
    assert.equal((await waiting).status, 200);
    assert.deepEqual([node.proxy?.waiting, node.proxy?.counts.queued], [0, 1]);
  });

  story("an unreachable application is waited for, and named after the timeout", async (scene) => {
    const { app, server } = await serve(scene, () => undefined);
    server.close();
    const node = await scene.start(scene.dir(), { kind: "primary" }, place(app, 30));
    const refused = await fetch(urlOf(node), { method: "POST" });
    assert.deepEqual([refused.status, await codeIn(refused)], [502, "app_unreachable"]);
    assert.equal((await fetch(urlOf(node))).status, 502);
  });

  story("a request whose application dies is retried only if it is idempotent", async (scene) => {
    let requests = 0;
    const { app } = await serve(scene, (request, response) => {
      request.resume().on("end", () => (++requests % 2 ? request.socket.destroy() : response.end(`at ${requests}`)));
    });
    const node = await scene.start(scene.dir(), { kind: "primary" }, place(app));
    const plain = await fetch(urlOf(node), { method: "POST", body: "x" });
    assert.deepEqual([plain.status, await codeIn(plain), requests], [502, "outcome_unknown", 1]);
    requests = 0;
    const keyed = await fetch(urlOf(node), { method: "POST", body: "x", headers: { "idempotency-key": "k" } });
    assert.deepEqual([keyed.status, await keyed.text(), node.proxy?.counts.repeated], [200, "at 2", 1]);
  });

  story("a read with a transaction that is not here yet waits for it", async (scene) => {
    const here = scene.dir();
    const db = await scene.app(here);
    await db.write();
    const { app } = await serve(scene, (_, response) => response.end("read"));
    const primary = await scene.start(here, { kind: "primary" }, place(app));
    const replica = await scene.start(scene.dir(), { kind: "join", url: primary.url }, place(app));
    await until("both have the same", same(primary, replica));
    const { txid = 0 } = primary.node.directory.get("db")?.position ?? {};
    const answer = fetch(urlOf(replica), { headers: { "hangar-txid": hex16(txid + 1) } });
    await until("it waits", () => replica.node.waits.count === 1);
    await db.write();
    assert.equal(await (await answer).text(), "read");
  });

  story("a write's response waits for replicas and is sent with the first acknowledgement", async (scene) => {
    const here = scene.dir();
    const app_db = await scene.app(here);
    const { app } = await serve(scene, (_, response) => {
      void app_db.write().then(() => response.end("written"));
    });
    const ack = { name: "one", replicas: 1 } as const;
    const node = await scene.start(here, { kind: "primary" }, { ...place(app), ack });
    const answer = fetch(urlOf(node), { method: "POST" });
    await until("it waits to be acknowledged", () => node.node.waits.count === 1);
    const replica = await scene.start(scene.dir(), { kind: "join", url: node.url });
    assert.equal((await answer).status, 200);
    await replica.close();
  });

  story("a handover waits for the write in progress, and the next ones go to the new primary", async (scene) => {
    const lease = join(scene.dir(), "lease.db");
    const ack = { name: "one", replicas: 1 } as const;
    const held: (() => void)[] = [];
    const answered: string[] = [];
    const start = async (name: string): Promise<RunningNode> => {
      const dir = scene.dir();
      const written = async (): Promise<string> => {
        if (name === "first" && held.length === 0) await new Promise<void>((go) => void held.push(go));
        const db = await scene.app(dir);
        await db.write();
        db.close();
        answered.push(name);
        return name;
      };
      const { app } = await serve(scene, (_, response) => void written().then((by) => response.end(by)));
      const leases = new RowLeases(new SqliteRows(lease), systemClock);
      scene.later(() => leases.close());
      return await scene.start(dir, { kind: "lease", leases, candidate: true, renew_ms: 60 }, { ...place(app), ack });
    };
    const first = await start("first");
    await until("it is primary", () => first.node.role.kind === "primary");
    const second = await start("second");
    await until("the other is in sync", () => first.node.acknowledgements.in_sync.in_sync.length === 1);
    const begun = fetch(urlOf(first), { method: "POST" });
    await until("the application works on it", () => held.length === 1);
    const promoted = fetch(`${second.url}/promote`, { method: "POST" });
    await until("it drains", () => first.node.proxy?.draining === true);
    const next = fetch(urlOf(first), { method: "POST" });
    await until("the next one waits", () => first.node.proxy?.waiting === 1);
    held[0]?.();
    assert.equal(await (await begun).text(), "first");
    assert.equal((await promoted).status, 200);
    assert.equal(await (await next).text(), "second");
    assert.deepEqual(answered, ["first", "second"]);
  });

  story("a write that no replica acknowledges in time is 504 not_acknowledged", async (scene) => {
    const here = scene.dir();
    const app_db = await scene.app(here);
    const { app } = await serve(scene, (_, response) => {
      void app_db.write().then(() => response.end("written"));
    });
    const proxy = { ...place(app).proxy, ack_ms: 20 };
    const node = await scene.start(here, { kind: "primary" }, { proxy, ack: { name: "one", replicas: 1 } });
    const answer = await fetch(urlOf(node), { method: "POST" });
    assert.deepEqual([answer.status, await codeIn(answer)], [504, "not_acknowledged"]);
  });

  story("bodies of any size pass unchanged, and hop-by-hop headers are removed", async (scene) => {
    const seen: IncomingMessage["headers"][] = [];
    const { app } = await serve(scene, (request, response) => {
      seen.push(request.headers);
      response.writeHead(200, { "x-here": "1", connection: "x-private, close", "x-private": "1" });
      request.pipe(response);
    });
    const node = await scene.start(scene.dir(), { kind: "primary" }, place(app));
    for (const bytes of [0, 1, 100_000, 5_000_000]) {
      const body = Buffer.alloc(bytes, "abcdefg");
      const response = await fetch(urlOf(node), { method: "POST", body });
      assert.ok(Buffer.from(await response.arrayBuffer()).equals(body), `${bytes} bytes`);
      assert.deepEqual([response.headers.get("x-here"), response.headers.get("x-private")], ["1", null]);
    }
    const chunked = httpRequest(urlOf(node), { method: "PUT", headers: { connection: "x-mine", "x-mine": "1" } });
    const answered = once(chunked, "response") as Promise<[IncomingMessage]>;
    chunked.write("one ");
    chunked.end("two");
    const [response] = await answered;
    assert.equal(await text(response), "one two");
    assert.equal(seen.at(-1)?.["x-mine"], undefined);
    assert.equal(seen.at(-1)?.["x-forwarded-for"], "127.0.0.1");
  });

  story("upgrades go to the local application, both ways", async (scene) => {
    const { app, server } = await serve(scene, (_, response) => response.end());
    server.on("upgrade", (request, socket, head) => {
      socket.write(
        `HTTP/1.1 101 Switching Protocols\r\nupgrade: ${String(request.headers.upgrade)}\r\nconnection: upgrade\r\n\r\n`,
      );
      socket.write(head);
      socket.pipe(socket);
    });
    const node = await scene.start(scene.dir(), { kind: "primary" }, place(app));
    const socket = connect(Number(new URL(urlOf(node)).port), "127.0.0.1");
    scene.later(() => socket.destroy());
    let said = "";
    socket.on("data", (bytes: Buffer) => {
      said += bytes.toString();
    });
    socket.write("GET /ws HTTP/1.1\r\nhost: x\r\nupgrade: echo\r\nconnection: upgrade\r\n\r\n");
    await until("it is upgraded", () => said.includes("101 Switching"));
    socket.write("hello there");
    await until("it echoes", () => said.includes("hello there"));
  });
});
