/** `config.sqlite` in real machines: the platform's node runs beside the program, whatever the image has. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { packagesMissing } from "../debian-root.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { volumesMissing } from "../volumes.ts";
import { MUSL_SERVER, muslMissing, muslQuery, muslRoot } from "./musl-image.ts";
import { SqliteScene, WRITERS } from "./sqlite-scene.ts";

const skip = volumesMissing() ?? realMachinesMissing() ?? packagesMissing(WRITERS);
const APP = "mixed";
const DEBIAN = ["sh", "/program.sh"];

suite("SQLite nodes in machines of any image", { skip, timeout: 900_000 }, () => {
  const ends: (() => unknown)[] = [];
  let scene: SqliteScene;

  before(async () => {
    scene = await SqliteScene.open({ after: (end) => void ends.unshift(end) });
    for (const name of ["debian", "box", "scratch"] as const) await scene.image(name);
    await scene.ask("POST /v1/apps", { app_name: APP });
  });

  after(async () => {
    for (const end of ends) await end();
  });

  test("machines of glibc, a static busybox and no libc at all replicate; a lost primary is replaced", async () => {
    const first = await scene.machine(APP, "debian:1", DEBIAN);
    assert.equal(await scene.primary(APP, [first]), first);
    await scene.sqlite(APP, first, "INSERT INTO t VALUES (1, 'sqlite3')");
    const box = await scene.machine(APP, "box:1", ["/bin/sh", "-c", "while :; do sleep 1000; done"]);
    const scratch = await scene.machine(APP, "scratch:1", ["/busybox", "sleep", "1000000"]);
    await scene.alike(APP, 3);
    assert.equal(await scene.primary(APP, [first, box, scratch]), first);
    assert.match(await scene.inside(APP, box, ["ls", "/data"]), /^app\.db$/m);

    const second = await scene.machine(APP, "debian:1", DEBIAN);
    await scene.alike(APP, 4);
    assert.equal(await scene.python(APP, second, "SELECT who FROM t"), "sqlite3");
    await assert.rejects(scene.sqlite(APP, second, "INSERT INTO t VALUES (2, 'a replica')"), /locked|readonly/);

    await until("the platform finds the nodes by their metrics", async () => {
      const { nodes } = await scene.ask("GET /v1/orgs/personal/db_nodes");
      return (nodes as { state: unknown }[]).filter(({ state }) => state !== null).length === 4;
    });
    await scene.ask(`DELETE /v1/apps/${APP}/machines/${first}?force=true`);
    const next = await scene.primary(APP, [box, scratch, second]);
    await until("its databases are the same everywhere", async () => {
      const nodes = await scene.nodes(APP);
      return nodes.length === 3 && new Set(nodes.map(({ node }) => node?.databases["app.db"])).size === 1;
    });
    assert.ok(next);
    assert.equal(await scene.python(APP, second, "SELECT count(*) FROM t"), "1");
  });

  test("machines with musl as their only libc write, follow and take over, next to machines of glibc", async (t) => {
    const root = join(scene.cwd, "musl");
    const missing = muslMissing() ?? muslRoot(root);
    if (missing) return t.skip(missing);
    await scene.ok(`images import musl:1 ${root}`);
    const app = "alpine";
    await scene.ask("POST /v1/apps", { app_name: app });
    const query = (id: string, sql: string): Promise<string> => scene.inside(app, id, muslQuery(sql));

    const first = await scene.machine(app, "musl:1", MUSL_SERVER);
    assert.equal(await scene.primary(app, [first]), first);
    assert.match(await scene.logs(app, first), /following|primary[\s\S]*the program starts/);
    assert.equal(await query(first, "INSERT INTO t VALUES (1, 'musl') RETURNING who"), "musl");
    const debian = await scene.machine(app, "debian:1", DEBIAN);
    const second = await scene.machine(app, "musl:1", MUSL_SERVER);
    await scene.alike(app, 3);
    assert.equal(await scene.python(app, debian, "SELECT who FROM t"), "musl");
    assert.equal(await query(second, "SELECT who FROM t"), "musl");
    await assert.rejects(query(second, "INSERT INTO t VALUES (2, 'a replica')"), /locked|readonly/);

    await scene.ask(`DELETE /v1/apps/${app}/machines/${first}?force=true`);
    await scene.primary(app, [debian, second]);
    await scene.ask(`DELETE /v1/apps/${app}/machines/${debian}?force=true`);
    assert.equal(await scene.primary(app, [second]), second);
    assert.equal(await query(second, "INSERT INTO t VALUES (2, 'the next primary') RETURNING n"), "2");
    assert.equal(
      await query(second, "SELECT group_concat(who) FROM (SELECT who FROM t ORDER BY n)"),
      "musl,the next primary",
    );
  });

  test("a node that cannot start ends its machine with the reason, and no program starts", async () => {
    const backup = { dir: "/data", backup: "https://s3.example.com/bucket" };
    const more = { sqlite: backup, restart: { policy: "no" } };
    const path = `/v1/apps/${APP}/machines`;
    const id = await scene.machine(APP, "debian:1", DEBIAN, more);
    await until("it has ended", async () => (await scene.ask(`GET ${path}/${id}`)).state === "stopped");
    const { events } = await scene.ask(`GET ${path}/${id}`);
    assert.match(JSON.stringify(events), /"exit_code":2\b/);
    const logs = await scene.logs(APP, id);
    assert.match(logs, /needs HANGAR_OBJECTS_ACCESS_KEY and HANGAR_OBJECTS_SECRET_KEY/);
    assert.doesNotMatch(logs, /the program starts/);
    await scene.ask(`DELETE ${path}/${id}?force=true`);
  });

  test("a machine cannot change the files of its node, which other machines and the platform run", async () => {
    const id = await scene.machine(APP, "box:1", ["/bin/sh", "-c", "while :; do sleep 1000; done"]);
    for (const name of ["main.cjs", "node", "ld.so", "lib/libc.so.6"])
      for (const change of ["echo x >>", "rm -f", "chmod 777", "mount -o remount,rw"]) {
        const script = `${change} /.svc/db/${name}`;
        await assert.rejects(
          scene.inside(APP, id, ["sh", "-c", script]),
          /Read-only|not permitted|denied|can't/i,
          script,
        );
      }
  });
});
