import assert from "node:assert/strict";
import { existsSync, mkdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { Sealer } from "#core/sealer.ts";
import { tempDir, until } from "../../test/support.ts";
import { anAppTable, aTarget, OPTIONS } from "./fixtures.ts";
import { LastKnownTables, type ProxyTables } from "./last-known.ts";
import { PROXY_LIMITS } from "./limits.ts";

const KEY = Buffer.alloc(32, 7);
const CERTIFICATE = { hostnames: ["shop.example"], chain: "chain", key: "-----BEGIN PRIVATE KEY-----" };
const tablesOf = (name: string): ProxyTables => ({
  apps: [
    anAppTable(name, {
      protocol: "tcp",
      start: 80,
      end: 80,
      options: OPTIONS,
      targets: [aTarget(8080)],
      startable: [],
      empty: "",
    }),
  ],
  certificates: [CERTIFICATE],
});
const openTables = (file: string, key: Buffer = KEY): LastKnownTables =>
  new LastKnownTables({ file, sealer: new Sealer(key), clock: systemClock, log: silentLog });
const follow = (tables: LastKnownTables, name: string): void =>
  tables.follow(() => ({ ...tablesOf(name), region: "ams", host_id: "0001" }));

/** A file with the tables of the app `one`. */
async function aFile(): Promise<string> {
  const file = join(tempDir(), "known");
  const tables = openTables(file);
  follow(tables, "one");
  await tables.close();
  return file;
}

suite("the proxy's last known tables", () => {
  test("the last known tables are loaded unchanged, with the proxy's region and host", async () => {
    const known = await openTables(await aFile()).load();
    assert.ok("apps" in known);
    const { apps, certificates, region, host_id } = known;
    assert.deepEqual({ apps, certificates, region, host_id }, { ...tablesOf("one"), region: "ams", host_id: "0001" });
  });

  test("a change is written while the process runs, not only at its end", async () => {
    const file = await aFile();
    const tables = openTables(file);
    let name = "two";
    tables.follow(() => ({ ...tablesOf(name), region: "", host_id: "" }));
    const written = async (): Promise<string> => {
      const known = await openTables(file).load();
      return "apps" in known ? (known.apps[0]?.app_name ?? "") : "";
    };
    await until("the first one is there", async () => (await written()) === "two");
    name = "three";
    tables.changed();
    await until("the next one is there", async () => (await written()) === "three");
    await tables.close();
  });

  test("the file of last known tables is encrypted: no private key and no name is readable", async () => {
    const text = readFileSync(await aFile(), "latin1");
    assert.doesNotMatch(text, /PRIVATE KEY|shop\.example/);
  });

  test("last known tables that are modified, sealed with another key or missing are refused", async () => {
    const file = await aFile();
    assert.deepEqual(await openTables(file, Buffer.alloc(32, 8)).load(), { problem: "they cannot be read" });
    const bytes = readFileSync(file);
    bytes[bytes.length - 20] = (bytes.at(-20) ?? 0) ^ 1;
    writeFileSync(file, bytes);
    assert.deepEqual(await openTables(file).load(), { problem: "they cannot be read" });
    rmSync(file);
    assert.deepEqual(await openTables(file).load(), { problem: "they cannot be read" });
  });

  test("last known tables that are too old are refused; a running process keeps them fresh", async () => {
    const file = await aFile();
    const old = (Date.now() - PROXY_LIMITS.last_known_ms - 60_000) / 1000;
    utimesSync(file, old, old);
    const tables = openTables(file);
    const known = await tables.load();
    assert.match("problem" in known ? known.problem : "", /11 minutes ago \(limit last_known_ms\)/);
    await tables.confirm();
    assert.ok("apps" in (await tables.load()));
  });

  test("a failing disk costs the file, not the process; it is written once the disk works again", async () => {
    const folder = join(tempDir(), "gone");
    const file = join(folder, "known");
    const tables = openTables(file);
    follow(tables, "one");
    tables.changed();
    assert.equal(existsSync(file), false);
    mkdirSync(folder);
    await until("it is written", () => existsSync(file));
    await tables.close();
  });
});
