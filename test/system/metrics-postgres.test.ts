/** The series of a hosted database, read from a real one. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { silentLog } from "#core/log.ts";
import { PostgresReader } from "#metrics/builtin/postgres.ts";
import type { MeasuredMachine } from "#metrics/builtin/sources.ts";
import { POSTGRES_SERIES } from "../builtin-series.ts";
import { postgresMissing, startPostgres } from "../postgres.ts";

const machine: MeasuredMachine = {
  id: "m1",
  org_id: "org",
  app_id: "a",
  app: "ledger",
  region: "local",
  host: "0001",
  instance: "i1",
  private_ip: "fdaa::1",
  private_ipv4: null,
  boot: "b1",
  handle: null,
  started_at: 0,
  cpus: 1,
  cpu_kind: "shared",
  memory_mb: 256,
  serves: false,
  postgres_port: 5432,
};

test("every series of the specification comes from a real PostgreSQL", { skip: postgresMissing() }, async (t) => {
  const server = await startPostgres();
  t.after(() => server.stop());
  const url = new URL((await server.database()).replace("@/", "@localhost/"));
  const host = url.searchParams.get("host") ?? url.hostname;
  const login = { host, port: Number(url.port || 5432), user: url.username, password: url.password };
  let machines = [machine];
  const reader = new PostgresReader({ machines: async () => machines, log: silentLog, login: async () => login });
  t.after(() => reader.close());
  const samples = await reader.read();
  const names = new Set(samples.map(({ name }) => name));
  assert.deepEqual([...names].sort(), [...POSTGRES_SERIES].sort());
  for (const { name, labels, value, org_id } of samples) {
    assert.ok(Number.isFinite(value), `${name} is ${value}`);
    assert.deepEqual([org_id, labels["app"], labels["instance"]], ["org", "ledger", "i1"]);
  }
  const size = samples.find(
    ({ name, labels }) => name === "pg_database_size_bytes" && labels["datname"] === "postgres",
  );
  assert.ok((size?.value ?? 0) > 1e6);

  // One that is gone, or does not let us in, costs only its own series.
  machines = [{ ...machine, id: "m2" }];
  login.host = "/nowhere";
  assert.deepEqual(await reader.read(), []);
});
