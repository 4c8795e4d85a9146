/** `hangar postgres create` with a real Postgres in a real machine: it answers, and its series are in the metrics. */
import assert from "node:assert/strict";
import { chmodSync, chownSync, cpSync, existsSync, mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import pg from "pg";
import { POSTGRES_SERIES } from "../builtin-series.ts";
import { busyboxLayer, programLayer, realMachinesMissing } from "../rootfs.ts";
import { shell, until } from "../support.ts";
import { ROOT } from "./child.ts";
import { type Caller, type RealPlatform, realPlatform } from "./runc-support.ts";

const DEBIAN = "/usr/lib/postgresql";
const version = existsSync(DEBIAN) ? readdirSync(DEBIAN).sort().at(-1) : undefined;
const skip = realMachinesMissing() ?? (version ? undefined : "there is no Postgres (apt-get install postgresql)");
const APP_UID = 1000;

/** As the usual image does it: a database at the first start, with the password from the environment. */
const START = (programs: string, listen: string): string => `#!/bin/sh
set -e
printf %s "$POSTGRES_PASSWORD" > /home/app/password
${programs}/initdb -D /home/app/data -U postgres -A scram-sha-256 --pwfile=/home/app/password --locale=C -E UTF8 --no-sync
rm /home/app/password
echo 'host all all all scram-sha-256' >> /home/app/data/pg_hba.conf
exec ${programs}/postgres -D /home/app/data -k /home/app -c listen_addresses='${listen}' -c fsync=off
`;

/** An image with the Postgres of this box. */
function postgresImage(images: string, listen: string): void {
  const layer = busyboxLayer(join(images, "postgres"));
  const programs = `${DEBIAN}/${version}/bin`;
  for (const name of ["postgres", "initdb"]) programLayer(layer, join(programs, name), name);
  for (const folder of [`${DEBIAN}/${version}`, `/usr/share/postgresql/${version}`])
    cpSync(folder, join(layer, folder), { recursive: true, dereference: true });
  mkdirSync(join(layer, "home/app"), { recursive: true });
  chownSync(join(layer, "home/app"), APP_UID, APP_UID);
  writeFileSync(join(layer, "start"), START(programs, listen));
  chmodSync(join(layer, "start"), 0o755);
  writeFileSync(`${layer}.json`, JSON.stringify({ entrypoint: ["/start"], user: "app" }));
}

/** A database made by one command; answers its address. */
async function created({ data_dir }: RealPlatform): Promise<string> {
  const made = await shell("node_modules/.bin/node bin/hangar.mjs postgres create ledger --image postgres --json", {
    cwd: ROOT,
    HANGAR_DATA_DIR: data_dir,
  });
  assert.equal(made.status, 0, made.stderr);
  return (JSON.parse(made.stdout) as { url: string }).url;
}

async function measured(caller: Caller): Promise<void> {
  await until("its series are there", async () => {
    const answer = await caller.ask(
      "GET",
      "/prometheus/personal/api/v1/label/__name__/values?match[]={app=%22ledger%22}",
    );
    const known = (answer?.body["data"] ?? []) as string[];
    return POSTGRES_SERIES.every((name) => known.includes(name));
  });
  await caller.ask("DELETE", "/v1/apps/ledger?force=true");
}

test("one command creates a hosted PostgreSQL, and it is measured", { skip, timeout: 240_000 }, async (t) => {
  const platform = realPlatform(t);
  postgresImage(platform.images, "*");
  const caller = await platform.start();
  const connectionString = await created(platform);
  let rows: unknown[] = [];
  await until("the database answers", async () => {
    const client = new pg.Client({ connectionString });
    client.on("error", () => {});
    try {
      await client.connect();
      ({ rows } = await client.query("SELECT 6 * 7 AS answer"));
    } catch {
      return false;
    } finally {
      await client.end().catch(() => {});
    }
    return true;
  });
  assert.deepEqual(rows, [{ answer: 42 }]);
  await measured(caller);
});

test("a PostgreSQL that listens on IPv4 only is measured", { skip, timeout: 240_000 }, async (t) => {
  const platform = realPlatform(t);
  postgresImage(platform.images, "0.0.0.0");
  const caller = await platform.start();
  await created(platform);
  await measured(caller);
});
