/**
 * Two controls and a host on one PostgreSQL. A machine with autostop is in use through one edge proxy for longer than it
 * may be idle, while the other sees nothing of it: it goes on, and is stopped when it is idle everywhere.
 */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import type { Reach } from "#proxy/exposure.ts";
import { aBackend, freePort } from "#proxy/fixtures.ts";
import { openPostgres } from "#stores/postgres/database.ts";
import { sqlProxyStore } from "#stores/sql/proxy.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { postgresMissing, startPostgres } from "../postgres.ts";
import { tempDir, until } from "../support.ts";
import { startProgram } from "./child.ts";

const PORT = await freePort();
const [HERE, THERE] = ["127.0.0.1", "127.0.0.2"];
const IDLE_S = 1;
/** Each comes half a second after the one before, so the machine is idle for long enough in between. */
const LOOKS = 5;
const CONFIG = {
  image: "web:1",
  services: [
    {
      protocol: "tcp",
      internal_port: 80,
      autostop: "stop",
      autostart: true,
      ports: [{ port: PORT, handlers: ["http"] }],
    },
  ],
};

/** What all machines are reached as: it answers on command. */
async function aServer(t: TestContext) {
  const answering = Promise.withResolvers<void>();
  const asked = Promise.withResolvers<void>();
  const { port } = await aBackend(t, (_request, response) => {
    asked.resolve();
    void answering.promise.then(() => response.end("served"));
  });
  const reach: Reach = () => ({ host: "127.0.0.1", port });
  return { reach, asked: asked.promise, answer: () => answering.resolve() };
}

suite("autostop with several controls", { skip: postgresMissing() }, () => {
  test("a machine in use through one edge proxy is stopped by another only when it is idle", async (t) => {
    const postgres = await startPostgres();
    t.after(() => postgres.stop());
    const database = await postgres.database();
    const { reach, asked, answer } = await aServer(t);
    const env = { HANGAR_DATABASE_URL: database, HANGAR_ROLE: "control", HANGAR_AUTOSTOP_IDLE: String(IDLE_S) };
    const control = async (host: string, more: Record<string, string> = {}): Promise<TestPlatform> =>
      await testPlatform(t, { ...env, HANGAR_PROXY_LISTEN_HOST: host, HANGAR_PROXY_WORKERS: "1", ...more }, { reach });
    const one = await control(HERE);
    const token = async (): Promise<string> =>
      String((await one.ask("POST /v1/platform/host_join_tokens")).body["token"]);
    await control(THERE, { HANGAR_JOIN_TOKEN: await token() });
    const role = ["--role", "host", "--driver", "sim", "--data-dir", tempDir(), "--database", database];
    const host = startProgram(t, "test/system/hosts-node.ts", [...role, "--join-token", await token()], {
      HANGAR_TEST_JOURNAL: `${tempDir()}/journal`,
    });
    await host.until(/^ready /);
    await one.ask("POST /v1/apps", { body: { app_name: "web" } });
    await one.ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
    const made = await one.ask("POST /v1/apps/web/machines", { body: { config: CONFIG } });
    assert.equal(made.status, 200, made.text);
    const state = async (): Promise<string> =>
      String((await one.ask(`GET /v1/apps/web/machines/${made.body["id"]}`)).body["state"]);

    const store = await openPostgres(database);
    t.after(() => store.close());
    const { peers } = sqlProxyStore(store);
    const ask = async (): Promise<string | undefined> => {
      const answered = await fetch(`http://${HERE}:${PORT}/`).catch(() => undefined);
      return answered?.ok ? await answered.text() : undefined;
    };
    const request = until("the listener is open, and it is served", ask);
    // Whichever comes first: a request that is never served says why.
    await Promise.race([asked, request]);
    const before = await peers();
    assert.equal(before.length, 2, "both peers are known to each other");
    await until("both have looked often enough", async () => {
      const beats = new Map((await peers()).map(({ node_id, beat }) => [node_id, beat]));
      return before.every(({ node_id, beat }) => (beats.get(node_id) ?? 0) >= beat + LOOKS);
    });
    assert.equal(await state(), "started", "it is in use");
    answer();
    assert.equal(await request, "served");
    await until("it is stopped when nobody uses it", async () => (await state()) === "stopped");
  });
});
