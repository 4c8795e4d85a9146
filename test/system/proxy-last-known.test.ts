/**
 * PostgreSQL is away, and the process with the edge proxy is killed and started again: apps are served by what it knew,
 * over TLS too, the API says what is the matter, and everything goes on without a restart when the database is back.
 */
import assert from "node:assert/strict";
import { existsSync, readFileSync, statSync, utimesSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { connect } from "node:tls";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { Sealer } from "#core/sealer.ts";
import { freePort } from "#proxy/fixtures.ts";
import { LastKnownTables } from "#proxy/last-known.ts";
import { PROXY_LIMITS } from "#proxy/limits.ts";
import { selfSigned } from "#proxy/x509.ts";
import { postgresMissing, startPostgres } from "../postgres.ts";
import { tempDir, until } from "../support.ts";
import { type Child, startProgram } from "./child.ts";
import { startDaemon } from "./daemon.ts";

const skip = postgresMissing() ?? (process.env["HANGAR_TEST_POSTGRES_URL"] ? "needs a server of its own" : undefined);
const NAME = "shop.example";

async function aBackend(t: TestContext): Promise<number> {
  const server: Server = createServer((_request, response) => response.end("served"));
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return (server.address() as AddressInfo).port;
}

async function scene(t: TestContext, role: string) {
  const postgres = await startPostgres();
  t.after(() => postgres.stop());
  const [backend, listen, http, https] = [await aBackend(t), await freePort(), await freePort(), await freePort()];
  const data_dir = tempDir();
  const settings = ["--role", role, "--driver", "sim", "--database", await postgres.database(), "--log-level", "warn"];
  const args = [String(backend), "--data-dir", data_dir, "--listen", `127.0.0.1:${listen}`, ...settings];
  const start = (): Child => startProgram(t, "test/system/last-known-node.ts", args);
  const api = `http://127.0.0.1:${listen}`;
  const call = async (method: string, path: string, body?: object): Promise<Response> =>
    await fetch(`${api}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${readFileSync(join(data_dir, "token"), "utf8").trim()}`,
        "content-type": "application/json",
      },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
  const served = async (): Promise<string> =>
    await (await fetch(`http://127.0.0.1:${http}/`, { headers: { connection: "close" } })).text();
  return { postgres, data_dir, start, api, call, served, http, https };
}

/** The name in the certificate that is shown for `servername`. */
async function shownName(port: number, servername: string): Promise<string> {
  const socket = connect({ port, host: "127.0.0.1", servername, rejectUnauthorized: false });
  await new Promise((resolve, reject) => socket.once("secureConnect", resolve).once("error", reject));
  const names = socket.getPeerCertificate().subjectaltname ?? "";
  socket.destroy();
  return names;
}

/** An app with one machine, a port with and one without TLS, and a certificate of its own. */
async function makeApp({ call, http, https, served }: Awaited<ReturnType<typeof scene>>): Promise<string> {
  const ok = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
    const answer = await call(method, path, body);
    const text = await answer.text();
    assert.ok(answer.ok, `${method} ${path}: ${answer.status} ${text}`);
    return (text === "" ? {} : JSON.parse(text)) as Record<string, unknown>;
  };
  await ok("POST", "/v1/apps", { app_name: "web" });
  await ok("POST", "/v1/apps/web/ip_assignments", { type: "shared_v4" });
  const ports = [
    { port: http, handlers: ["http"] },
    { port: https, handlers: ["tls", "http"] },
  ];
  const config = { image: "web:1", services: [{ protocol: "tcp", internal_port: 8080, ports }] };
  const { id } = await ok("POST", "/v1/apps/web/machines", { config });
  const { chain, key } = selfSigned([NAME], Date.now());
  await ok("POST", "/v1/apps/web/certificates/custom", { hostname: NAME, fullchain: chain, private_key: key });
  await until("it is served", async () => (await served().catch(() => "")) === "served");
  return String(id);
}

suite("edge proxy started while the database is unreachable", { skip }, () => {
  test("apps are served from the last known tables, and the proxy recovers when the database is back", async (t) => {
    const it = await scene(t, "all");
    const first = it.start();
    await first.until(/^ready /);
    const id = await makeApp(it);
    await until("the certificate is in force", async () => (await shownName(it.https, NAME)).includes(NAME));
    const file = join(it.data_dir, "last-known-routes");
    const master_key = Buffer.from(readFileSync(join(it.data_dir, "master.key"), "utf8").trim(), "base64");
    const tables = new LastKnownTables({ file, sealer: new Sealer(master_key), clock: systemClock, log: silentLog });
    await until("what is known is on the disk", async () => {
      const known = await tables.load();
      return "apps" in known && known.apps[0]?.ports[0]?.targets.length === 1 && known.certificates.length === 1;
    });
    assert.doesNotMatch(readFileSync(file, "latin1"), /PRIVATE KEY|shop\.example/, "it is sealed");
    assert.equal(statSync(file).mode & 0o077, 0, "and its owner's alone");

    await it.postgres.crash();
    await first.kill();
    const second = it.start();
    assert.match(await second.until(/^waiting /), /cannot be reached.*1 apps are served by the routes known last/);
    assert.equal(await it.served(), "served");
    assert.match(await shownName(it.https, NAME), new RegExp(NAME), "with its certificate");
    const health = await fetch(`${it.api}/healthz`);
    assert.equal(health.status, 200);
    const ready = await fetch(`${it.api}/readyz`);
    assert.equal(ready.status, 503);
    const { reasons } = (await ready.json()) as { reasons: object[] };
    assert.deepEqual(reasons, [{ part: "database", reason: "it cannot be reached" }]);
    const refused = await it.call("GET", "/v1/apps/web/machines");
    assert.equal(refused.status, 503);
    assert.equal(((await refused.json()) as { status: string }).status, "storage_failed");

    // Killed once more, it still knows.
    await second.kill();
    const third = it.start();
    await third.until(/^waiting /);
    assert.equal(await it.served(), "served");

    let asked = 0;
    const wrong: string[] = [];
    let asking = true;
    const client = (async () => {
      for (; asking; asked++)
        await it.served().then(
          (text) => text === "served" || wrong.push(text),
          (e: unknown) => wrong.push(String(e)),
        );
    })();
    await it.postgres.start();
    await third.until(/^ready /);
    await until("it is ready", async () => (await fetch(`${it.api}/readyz`)).ok);
    const before = asked;
    await until("requests go on", () => asked > before + 20);
    asking = false;
    await client;
    assert.deepEqual(wrong, [], `none of ${asked} requests failed while the platform took over`);
    const machine = (await (await it.call("GET", `/v1/apps/web/machines/${id}`)).json()) as { state: string };
    assert.equal(machine.state, "started");
    const gone = await it.call("DELETE", "/v1/apps/web?force=true");
    assert.equal(gone.status, 202, await gone.text());
    await until("what is gone is served no more", async () => (await it.served().catch(() => "refused")) !== "served");
  });

  test("last known tables that are too old or modified are not used", async (t) => {
    const it = await scene(t, "control");
    const first = it.start();
    await first.until(/^ready /);
    const file = join(it.data_dir, "last-known-routes");
    await until("there is a file", () => statSync(file, { throwIfNoEntry: false }) !== undefined);
    await it.postgres.crash();
    await first.kill();
    const old = Date.now() / 1000 - PROXY_LIMITS.last_known_ms / 1000 - 60;
    utimesSync(file, old, old);
    const second = it.start();
    assert.match(
      await second.until(/^waiting /),
      /Apps are not served meanwhile.*11 minutes ago \(limit last_known_ms\)/,
    );
    await second.kill();
  });

  test("a first start without the database fails with the reason", async (t) => {
    const it = await scene(t, "all");
    await it.postgres.crash();
    const first = it.start();
    const { code } = await first.ended;
    assert.notEqual(code, 0);
    assert.match(first.complaints, /the database cannot be reached/);
    assert.doesNotMatch(first.lines.join("\n"), /waiting/);
  });

  test("a host waits for the database and is ready when it is back, without a restart", async (t) => {
    const postgres = await startPostgres();
    t.after(() => postgres.stop());
    const shared = ["--driver", "sim", "--database", await postgres.database(), "--log-level", "error"];
    const control = await startDaemon(t, tempDir(), ["--role", "control", ...shared]);
    const { body } = await control.call("POST", "/v1/platform/host_join_tokens");
    const data_dir = tempDir();
    const args = ["--role", "host", "--data-dir", data_dir, ...shared];
    const start = (...more: string[]): Child => startProgram(t, "src/main.ts", [...args, ...more]);
    const first = start("--join-token", String(body["token"]));
    await first.until(/ is ready /);
    await until("it was ready once", () => existsSync(join(data_dir, "last-known-routes")));
    await postgres.crash();
    await first.kill();
    const second = start();
    await until("it says what it waits for", () => second.complaints.includes("; waiting for it."));
    await postgres.start();
    await second.until(/ is ready /);
  });
});
