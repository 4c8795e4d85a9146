/** `hangar sqlite attach`, `detach` and `status` with real machines, and what becomes of the databases in bad hours. */
import assert from "node:assert/strict";
import { readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { packagesMissing } from "../debian-root.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { runs, until } from "../support.ts";
import { volumesMissing } from "../volumes.ts";
import { SqliteScene, WRITERS } from "./sqlite-scene.ts";

const skip = volumesMissing() ?? realMachinesMissing() ?? packagesMissing(WRITERS);
const APP = "ledger";
const STARTS = runs(3, 11);
const FAST = "--stable-for 1s --wait-timeout 2m";

const FILE = `app = "${APP}"
image = "debian:1"
[experimental]
exec = ["sh", "/program.sh"]
[[vm]]
memory = "512mb"
[[mounts]]
source = "data"
destination = "/data"
initial_size = "1gb"
[restart]
policy = "always"
`;

suite("hangar sqlite", { skip, timeout: 900_000 }, () => {
  const ends: (() => unknown)[] = [];
  let scene: SqliteScene;
  const write = (more = ""): void => writeFileSync(join(scene.cwd, "hangar.toml"), FILE + more);

  before(async () => {
    scene = await SqliteScene.open({ after: (end) => void ends.unshift(end) });
    await scene.image("debian");
    write();
    await scene.ok(`deploy ${FAST}`);
  });

  after(async () => {
    for (const end of ends) await end();
  });

  const ids = async (): Promise<string[]> =>
    ((await scene.ask(`GET /v1/apps/${APP}/machines`)) as { id: string }[]).map(({ id }) => id);
  /** A mark in the machine's memory, which the next boot does not have. */
  const mark = (id: string): Promise<string> => scene.inside(APP, id, ["touch", "/dev/shm/mark"]);
  const isMarked = async (id: string): Promise<boolean | undefined> =>
    scene.inside(APP, id, ["ls", "/dev/shm"]).then(
      (names) => names.includes("mark"),
      () => undefined,
    );

  /** The pid of the node in the machine. */
  const nodeIn = async (id: string): Promise<string> => {
    const own = "*/.svc/db/ma[i]n.cjs*";
    const script = `for p in /proc/[0-9]*; do case "$(tr "\\0" " " < $p/cmdline)" in ${own}) echo "\${p#/proc/}";; esac; done`;
    return await scene.inside(APP, id, ["sh", "-c", script]);
  };

  test("an attach that cannot work says why, and makes no release", async () => {
    const refused: [string, number, RegExp][] = [
      ["sqlite attach nowhere --dir /data", 4, /Could not find App/],
      [`sqlite attach ${APP}`, 2, /--dir \/data/],
      [`sqlite attach ${APP} --dir data`, 2, /no absolute path/],
      [
        `sqlite attach ${APP} --dir /var/lib`,
        2,
        /no machine of ledger has a volume at \/var\/lib: its volumes are at \/data in app/,
      ],
      [`sqlite attach ${APP} --dir /data --ack all`, 2, /none, one, quorum/],
      [`sqlite attach ${APP} --dir /data --ack quorum`, 2, /number of machines/],
      [`sqlite attach ${APP} --dir /data --backup here`, 2, /https:\/\/host\/bucket/],
      [
        `sqlite attach ${APP} --dir /data --backup https://s3.example.com/b`,
        2,
        /no secret HANGAR_OBJECTS_ACCESS_KEY and/,
      ],
      [`sqlite detach ${APP}`, 2, /has no replicated SQLite/],
    ];
    for (const [line, code, text] of refused) {
      const { status, stderr } = await scene.hangar(line);
      assert.equal(status, code, `${line}: ${stderr}`);
      assert.match(stderr, text, line);
    }
    assert.match(await scene.ok(`sqlite status ${APP}`), /no replicated SQLite/);
    const { releases } = await scene.ask(`GET /v1/apps/${APP}/releases`);
    assert.equal(releases.length, 1);
  });

  test("attach replicates what is there among the machines of the app, and a deploy keeps it", async () => {
    const [first = ""] = await ids();
    await scene.sqlite(APP, first, "INSERT INTO t VALUES (1, 'before')");
    assert.match(await scene.ok(`sqlite attach ${APP} --dir /data --dry-run`), /update/);
    assert.match(await scene.ok(`sqlite attach ${APP} --dir /data ${FAST}`), /release 2/);
    assert.equal(await scene.primary(APP, [first]), first);
    await scene.ok(`scale 2 --app ${APP} ${FAST}`);
    const second = (await ids()).find((id) => id !== first) ?? "";
    await scene.alike(APP, 2);
    assert.equal(await scene.python(APP, second, "SELECT who FROM t"), "before");
    await scene.sqlite(APP, first, "INSERT INTO t VALUES (2, 'after')");
    await scene.alike(APP, 2);
    assert.equal(await scene.python(APP, second, "SELECT who FROM t ORDER BY n"), "before after");
    // The program made its table where the primary had it: it had waited for the node.
    assert.deepEqual(
      await scene.inside(APP, second, ["sh", "-c", "ls /data/.replication/aside 2>/dev/null; true"]),
      "",
    );
    assert.match(await scene.logs(APP, second), /following [\s\S]*the program starts/);

    assert.match(await scene.ok(`releases diff 1 --app ${APP}`), /config\.sqlite/);
    const other = await scene.hangar(`sqlite attach ${APP} --dir /data/more`);
    assert.equal(other.status, 2, other.stderr);
    assert.match(other.stderr, /in \/data already, and an app has one directory/);
    write('[env]\nVERSION = "2"\n');
    await scene.ok(`deploy ${FAST}`);
    await scene.alike(APP, 2);
    const moved = FILE.replace('destination = "/data"', 'destination = "/srv"');
    writeFileSync(join(scene.cwd, "moved.toml"), moved);
    assert.match(await scene.ok("deploy --file moved.toml --dry-run"), /no volume of this file has \/data/);
  });

  test("when the node is killed its machine ends with it, is restarted, and nothing is lost", async () => {
    const all = await ids();
    const primary = await scene.primary(APP, all);
    const written = Number(
      await scene.sqlite(APP, primary, "INSERT INTO t (who) VALUES ('kill'); SELECT count(*) FROM t"),
    );
    await mark(primary);
    const node = await nodeIn(primary);
    assert.match(node, /^\d+$/);
    await scene.inside(APP, primary, ["sh", "-c", `kill -9 ${node}`]).catch(() => "");
    await until("the machine has begun anew", async () => (await isMarked(primary)) === false);
    await scene.primary(APP, all);
    await scene.alike(APP, 2);
    for (const id of all) assert.equal(Number(await scene.python(APP, id, "SELECT count(*) FROM t")), written);
    const { events } = await scene.ask(`GET /v1/apps/${APP}/machines/${primary}`);
    assert.ok(JSON.stringify(events).includes('"exit_code":137'), "the exit is the node's");
  });

  const suspend = async (id: string): Promise<void> => {
    const path = `/v1/apps/${APP}/machines/${id}`;
    await scene.ask(`POST ${path}/suspend`);
    await scene.ask(`GET ${path}/wait?state=suspended&timeout=60`);
  };
  const resume = async (id: string): Promise<void> => {
    const path = `/v1/apps/${APP}/machines/${id}`;
    await scene.ask(`POST ${path}/start`);
    await scene.ask(`GET ${path}/wait?state=started&timeout=60`);
  };

  test("a suspended replica wakes up, finds its primary again and catches up", async () => {
    const all = await ids();
    const primary = await scene.primary(APP, all);
    const replica = all.find((id) => id !== primary) ?? "";
    await mark(replica);
    await suspend(replica);
    await scene.sqlite(APP, primary, "INSERT INTO t (who) VALUES ('while it slept')");
    await resume(replica);
    await scene.alike(APP, 2);
    assert.equal(await isMarked(replica), true, "it was resumed, not booted");
    assert.match(await scene.python(APP, replica, "SELECT who FROM t ORDER BY n DESC LIMIT 1"), /while it slept/);
    assert.equal(await scene.primary(APP, all), primary);
    const { events } = await scene.ask(`GET /v1/apps/${APP}/machines/${replica}`);
    assert.match(JSON.stringify(events), /would lose the locks on .*-shm, which a program has mapped/);
  });

  test("a suspended primary is replaced meanwhile, and follows when it wakes up", async () => {
    const all = await ids();
    const primary = await scene.primary(APP, all);
    const other = all.find((id) => id !== primary) ?? "";
    await mark(primary);
    await suspend(primary);
    assert.equal(await scene.primary(APP, [other]), other);
    await scene.sqlite(APP, other, "INSERT INTO t (who) VALUES ('by the next')");
    await resume(primary);
    await scene.alike(APP, 2);
    assert.equal(await isMarked(primary), true, "it was resumed, not booted");
    assert.equal(await scene.primary(APP, all), other);
    assert.match(await scene.python(APP, primary, "SELECT who FROM t ORDER BY n DESC LIMIT 1"), /by the next/);
    await assert.rejects(scene.sqlite(APP, primary, "INSERT INTO t (who) VALUES ('two primaries')"), /locked|readonly/);
  });

  test("a machine that is stopped ends its program before the node: its last words are on the next primary", async () => {
    const all = await ids();
    const primary = await scene.primary(APP, all);
    const other = all.find((id) => id !== primary) ?? "";
    const path = `/v1/apps/${APP}/machines/${primary}`;
    // The program writes when it is told to end; process 1 tells it, and the node when it has ended.
    const last = `sqlite3 -cmd ".timeout 5000" /data/app.db "INSERT INTO t (who) VALUES ('last words')"`;
    const exec = ["sh", "-c", `end() { ${last}; exit 0; }; trap end TERM; while :; do sleep 1 & wait; done`];
    const { config } = await scene.ask(`GET ${path}`);
    await scene.ask(`POST ${path}`, { config: { ...config, init: { exec } } });
    await scene.ask(`GET ${path}/wait?state=started&timeout=60`);
    await scene.ask(`POST /v1/apps/${APP}/machines/${other}/restart`);
    const leader = await until("the machine with that program is primary", async () => {
      const first = await scene.primary(APP, all);
      if (first === primary) return first;
      await scene.ask(`POST /v1/apps/${APP}/machines/${other}/restart`);
      return undefined;
    });
    await scene.alike(APP, 2);
    await scene.ask(`POST /v1/apps/${APP}/machines/${leader}/stop`, { signal: "SIGTERM", timeout: "30s" });
    assert.equal(await scene.primary(APP, [other]), other);
    const found = await scene.python(APP, other, "SELECT who FROM t ORDER BY n DESC LIMIT 1");
    assert.match(found, /last words/, await scene.logs(APP, primary));
    await scene.ask(`POST ${path}/start`);
    await scene.alike(APP, 2);
  });

  /** Milliseconds from a start's request to the program's first line; the median of several. */
  const startMs = async (app: string, id: string): Promise<number> => {
    const path = `/v1/apps/${app}/machines/${id}`;
    const lines = async (): Promise<{ timestamp: number; message: string }[]> =>
      (await scene.ask(`GET ${path}/logs?tail=500`)).lines;
    const times: number[] = [];
    while (times.length < STARTS) {
      await scene.ask(`POST ${path}/stop`, { signal: "SIGKILL" });
      await until("it is stopped", async () => (await scene.ask(`GET ${path}`)).state === "stopped");
      const asked_ms = systemClock.now();
      await scene.ask(`POST ${path}/start`);
      const line = await until("the program starts", async () =>
        (await lines()).find(({ timestamp, message }) => timestamp >= asked_ms && message === "the program starts"),
      );
      times.push(line.timestamp - asked_ms);
    }
    return times.toSorted((a, b) => a - b)[Math.floor(STARTS / 2)] ?? 0;
  };

  test("what a node costs: its memory, and the time that it adds to a start", async (t) => {
    const [id = ""] = await ids();
    const node = await nodeIn(id);
    const rollup = await scene.inside(APP, id, ["cat", `/proc/${node}/smaps_rollup`]);
    const mib = (name: string): number =>
      Math.round(Number(new RegExp(`^${name}:\\s+(\\d+)`, "m").exec(rollup)?.[1]) / 1024);
    t.diagnostic(`memory of a node: ${mib("Rss")} MiB, ${mib("Pss_Anon")} MiB of them its own`);
    assert.ok(mib("Pss_Anon") < 64, rollup);
    const files = readdirSync(join(scene.data_dir, "sqlite-node"));
    assert.equal(files.length, 1, "the files are there once");

    await scene.ask("POST /v1/apps", { app_name: "alone" });
    const program = ["sh", "/program.sh"];
    const bare = await scene.machine("alone", "debian:1", program, { sqlite: undefined });
    const without_ms = await startMs("alone", bare);
    const attached = await scene.machine("alone", "debian:1", program);
    const with_ms = await startMs("alone", attached);
    t.diagnostic(`from a start to the program's first line: ${without_ms} ms, with a node ${with_ms} ms`);
  });

  test("a rollback detaches: each machine has its files, and no node", async () => {
    const all = await ids();
    const primary = await scene.primary(APP, all);
    const count = await scene.sqlite(APP, primary, "SELECT count(*) FROM t");
    await scene.ok(`rollback 1 --app ${APP} ${FAST}`);
    for (const id of all) {
      assert.equal(await nodeIn(id), "");
      assert.equal(await scene.python(APP, id, "SELECT count(*) FROM t"), count);
      assert.equal(await scene.sqlite(APP, id, `INSERT INTO t (who) VALUES ('${id}'); SELECT changes()`), "1");
    }
    assert.match(await scene.ok(`sqlite status ${APP}`), /no replicated SQLite/);
  });

  test("[sqlite] in the app file attaches, detach takes the node away, and a directory without a volume is refused", async () => {
    write('[sqlite]\ndir = "/srv"\n');
    const refused = await scene.hangar("deploy --dry-run");
    assert.match(refused.stderr, /\[sqlite\] dir = "\/srv" is on no volume/);
    write('[sqlite]\ndir = "/data"\n');
    await scene.ok(`deploy ${FAST}`);
    const all = await ids();
    await scene.primary(APP, all);
    await scene.alike(APP, 2);
    await scene.ok(`sqlite detach ${APP} ${FAST}`);
    for (const id of all) assert.equal(await nodeIn(id), "");
  });
});
