/** `hangar sqlite backups` and `restore`: a bucket of s3rver in a machine, databases written by Debian's sqlite3. */
import assert from "node:assert/strict";
import { cpSync, mkdirSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { packageRoot, packagesMissing } from "../debian-root.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { s3Missing } from "../s3.ts";
import { until } from "../support.ts";
import { volumesMissing } from "../volumes.ts";
import { ROOT } from "./child.ts";
import { SqliteScene, WRITERS } from "./sqlite-scene.ts";

const NEEDS_OF_NODE = ["libstdc++6", "coreutils", "dash"];
const skip =
  volumesMissing() ?? realMachinesMissing() ?? packagesMissing([...WRITERS, ...NEEDS_OF_NODE]) ?? s3Missing();
const APP = "ledger";
const PORT = 9000;
const S3 = ["/node", "--no-deprecation", "--openssl-legacy-provider", "/tools/node_modules/s3rver/bin/s3rver.js"];
const S3_OPTIONS = [
  "-d",
  "/data",
  "-a",
  "::",
  "-p",
  String(PORT),
  "--no-vhost-buckets",
  "--configure-bucket",
  "hangar",
];
const KEYS = "HANGAR_OBJECTS_ACCESS_KEY=S3RVER HANGAR_OBJECTS_SECRET_KEY=S3RVER HANGAR_OBJECTS_REGION=us-east-1";

interface Backup {
  name: string;
  from: string;
  until: string;
  last: string;
}

suite("backups of replicated SQLite", { skip, timeout: 600_000 }, () => {
  const ends: (() => unknown)[] = [];
  let scene: SqliteScene;
  let machines: string[];
  const at = (name: string): string => `http://${name}.internal:${PORT}/hangar/ledger`;

  before(async () => {
    scene = await SqliteScene.open({ after: (end) => void ends.unshift(end) });
    await scene.image("debian");
    await scene.ok(`images import bucket:1 ${bucketRoot(join(scene.cwd, "bucket"))}`);
    await scene.ask("POST /v1/apps", { app_name: "bucket" });
    const guest = { cpu_kind: "shared", cpus: 1, memory_mb: 512 };
    const config = { image: "bucket:1", init: { exec: [...S3, ...S3_OPTIONS] }, guest };
    const { id } = await scene.ask("POST /v1/apps/bucket/machines", { config });
    await until("the bucket listens", async () => /listening/i.test(await scene.logs("bucket", id)));
    await scene.ask("POST /v1/apps", { app_name: APP });
    await scene.ok(`secrets set ${KEYS} --app ${APP}`);
    const sqlite = { dir: "/data", backup: at("bucket") };
    machines = [];
    for (const _ of [1, 2]) machines.push(await scene.machine(APP, "debian:1", ["sh", "/program.sh"], { sqlite }));
    await scene.primary(APP, machines);
  });

  after(async () => {
    for (const end of ends) await end();
  });

  const backup = async (): Promise<Backup | undefined> =>
    (JSON.parse(await scene.ok(`sqlite backups ${APP} --json`)) as Backup[]).find(({ name }) => name === "app.db");
  const txidOf = async (): Promise<string> => {
    const line = (await scene.nodes(APP)).find(({ node }) => node?.primary);
    return line?.node?.databases["app.db"]?.split("/")[0] ?? "";
  };
  const write = async (sql: string): Promise<void> => {
    await scene.sqlite(APP, await scene.primary(APP, machines), sql);
  };
  const backedUp = async (txid: string): Promise<Backup> =>
    await until(`${txid} is backed up`, async () => {
      const found = await backup();
      return found && found.last >= txid ? found : undefined;
    });

  test("a database goes back to a moment on all nodes, and forward again", async () => {
    await write("INSERT INTO t VALUES (1, 'kept')");
    await scene.alike(APP, 2);
    const good = await txidOf();
    const { until: moment } = await backedUp(good);
    assert.ok(Date.parse(moment) <= Date.now(), moment);
    await write("DELETE FROM t; DROP TABLE t");
    const bad = await txidOf();
    await backedUp(bad);
    assert.match(await scene.ok(`sqlite backups ${APP}`), /app\.db +\d{4}-/);

    const said = await scene.ok(`sqlite restore ${APP} app.db --txid ${good}`);
    assert.match(said, /app\.db is as it was at \d{4}-/);
    await scene.alike(APP, 2);
    for (const id of machines) assert.equal(await scene.python(APP, id, "SELECT who FROM t"), "kept");
    for (const id of machines) assert.equal(await scene.sqlite(APP, id, "PRAGMA integrity_check"), "ok");
    await write("INSERT INTO t VALUES (2, 'after')");

    await backedUp(await txidOf());
    await scene.ok(`sqlite restore ${APP} app.db --at ${moment}`);
    for (const id of machines)
      await until("it is as at the moment", async () => (await scene.python(APP, id, "SELECT max(n) FROM t")) === "1");
  });

  test("what cannot be restored says why, and changes nothing", async () => {
    const before = await txidOf();
    await scene.ask("POST /v1/apps", { app_name: "plain" });
    const refused: [string, RegExp][] = [
      ["sqlite backups nowhere", /Could not find App/],
      ["sqlite backups plain", /has no replicated SQLite: `hangar sqlite attach plain/],
      [`sqlite restore ${APP} missing.db`, /missing\.db/],
      [`sqlite restore ${APP} ../etc/passwd`, /cannot be the name of a database/],
      [`sqlite restore ${APP} app.db --at yesterday`, /"yesterday" is not a time such as/],
      [`sqlite restore ${APP} app.db --at 2001-01-01T00:00:00Z`, /2001/],
      [`sqlite restore ${APP} app.db --txid xyz`, /"xyz" is not a txid/],
    ];
    for (const [line, text] of refused) {
      const { status, stderr } = await scene.hangar(line);
      assert.notEqual(status, 0, line);
      assert.match(stderr, text, line);
    }
    assert.equal(await txidOf(), before);
  });

  test("without a primary it waits for one, and without a backup it says how to get one", async () => {
    const primary = await scene.primary(APP, machines);
    const stopped = scene.ask(`POST /v1/apps/${APP}/machines/${primary}/stop`);
    assert.match(await scene.ok(`sqlite backups ${APP}`), /app\.db/);
    await stopped;

    await scene.ask("POST /v1/apps", { app_name: "bare" });
    const bare = await scene.machine("bare", "debian:1", ["sh", "/program.sh"]);
    await scene.primary("bare", [bare]);
    const { stderr } = await scene.hangar("sqlite backups bare");
    assert.match(stderr, /bare has no backup: `hangar sqlite attach bare --dir \/data --backup/);
    await scene.ask(`POST /v1/apps/bare/machines/${bare}/stop`);
  });
});

/** s3rver with this Node: a server that nobody here wrote. */
function bucketRoot(dir: string): string {
  mkdirSync(dir, { recursive: true });
  packageRoot(dir, NEEDS_OF_NODE);
  cpSync(process.execPath, join(dir, "node"));
  cpSync(join(ROOT, "tools/node_modules"), join(dir, "tools/node_modules"), {
    recursive: true,
    filter: (path) => !/\/(@biomejs|@oxlint|@oxlint-tsgolint|oxlint|\.bin)(\/|$)/.test(path),
  });
  return dir;
}
