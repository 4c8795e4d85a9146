/** A hosted PostgreSQL of Debian's packages, from `hangar postgres create` to `detach`, with Debian's psql and real machines. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { fixtureImages, realMachinesMissing } from "../rootfs.ts";
import { shell, tempDir, until } from "../support.ts";
import { traces, volumesMissing } from "../volumes.ts";
import { Child, ROOT } from "./child.ts";
import { nodeIdOf } from "./leaks.ts";
import { PSQL, postgresRoot, postgresRootMissing, SERVER, START } from "./postgres-root.ts";

const skip = realMachinesMissing() ?? volumesMissing() ?? postgresRootMissing();
const IMAGE = "hangar/postgres:bookworm";

interface Made {
  machine_id: string;
  volume: string;
  password: string;
}

suite("hangar postgres", { skip, timeout: 15 * 60_000 }, () => {
  const dir = tempDir();
  const data_dir = join(dir, "data");
  const ends: (() => unknown)[] = [];
  let platform: TestPlatform;
  let made: Made;
  let tunnel: Child;
  let port = "";

  const run = (line: string) =>
    shell(line.replaceAll("hangar ", `"${process.execPath}" "${join(ROOT, "bin/hangar.mjs")}" `), {
      cwd: dir,
      HOME: dir,
      HANGAR_DATA_DIR: data_dir,
    });
  const ok = async (line: string): Promise<string> => {
    const { status, stdout, stderr } = await run(line);
    assert.equal(status, 0, `${line}: ${stdout}${stderr}`);
    return stdout;
  };
  /** Debian's psql on this box, through the local port; not in this thread, which the platform is in. */
  const psql = async (sql: string, url = `postgres://postgres:${made.password}@127.0.0.1:${port}/web`) => {
    const line = `"${PSQL}" -Atq -v ON_ERROR_STOP=1 "${url}" -c "${sql}"`;
    return await shell(line, { HOME: dir, PGCONNECT_TIMEOUT: "30" });
  };
  /** What a query answers, once the server takes connections again. */
  const answer = (sql: string, url?: string): Promise<string> =>
    until(`psql answers ${sql}`, async () => {
      const { status, stdout } = await psql(sql, url);
      return status === 0 && `${stdout.trim()} `;
    });
  const count = async (): Promise<number> => Number(await answer("SELECT count(*) FROM orders"));

  before(async () => {
    const root = postgresRoot(join(dir, "root"), SERVER);
    const images = fixtureImages({
      [IMAGE]: { layers: [root], config: { entrypoint: [START] } },
      client: { layers: [root] },
    });
    const later = { after: (end: () => unknown) => void ends.push(end) };
    platform = await testPlatform(later, { HANGAR_DRIVER: "runc", HANGAR_DATA_DIR: data_dir }, { images });
  });
  after(async () => {
    await tunnel?.kill();
    for (const end of ends) await end();
    if (existsSync(join(data_dir, "node_id")))
      await takeDown({ data_dir, node_id: nodeIdOf(data_dir), clock: systemClock, log: silentLog });
    for (const mount of traces(dir).mounts.reverse()) spawnSync("umount", ["--lazy", mount]);
  });

  test("create makes a server on a volume, attach gives an app a database that its machines reach by name", async () => {
    made = JSON.parse(await ok(`hangar postgres create ledger --image ${IMAGE} --json`)) as Made;
    assert.ok(made.volume);
    assert.match(await ok("hangar postgres list"), /ledger .* started /);
    await ok("hangar apps create web");
    assert.match(await ok("hangar postgres attach ledger --app web"), /secret DATABASE_URL/);
    assert.match((await run("hangar postgres attach ledger --app web")).stderr, /has a secret DATABASE_URL already/);
    const sql = "CREATE TABLE orders (id serial PRIMARY KEY, note text); SELECT current_user";
    const told = await ok(
      `hangar run --once client --app web --memory 256 -- sh -c '${PSQL} -Atq "$DATABASE_URL" -c "${sql}"'`,
    );
    assert.equal(told, "web\n");
    assert.match(await ok("hangar postgres show ledger"), /web +web +web \(DATABASE_URL\)/);
  });

  test("Debian's psql connects through hangar proxy, and hangar postgres connect runs it", async () => {
    tunnel = new Child(process.execPath, [join(ROOT, "bin/hangar.mjs"), "proxy", "0:5432", "ledger"], {
      cwd: dir,
      env: { ...process.env, HOME: dir, HANGAR_DATA_DIR: data_dir },
    });
    port = /:(\d+) -> port 5432/.exec(await tunnel.until(/-> port 5432 of machine/))?.[1] ?? "";
    assert.equal(await count(), 0);
    const as = await ok("hangar postgres connect ledger --as web -- -Atqc 'SELECT current_database(), current_user'");
    assert.equal(as, "web|web\n");
  });

  test("what was committed outlives kill -9 of the server and a suspension", async () => {
    for (let at = 1; at <= 5; at++) assert.equal((await psql(`INSERT INTO orders (note) VALUES ('${at}')`)).status, 0);
    const { machine_id } = made;
    const restarts = async (): Promise<number> => {
      const { body } = await platform.ask(`GET /v1/apps/ledger/machines/${machine_id}/events?limit=100`);
      return (body as { type: string }[]).filter(({ type }) => type === "exit").length;
    };
    await ok(`hangar machines signal ${machine_id} SIGKILL --app ledger`);
    await until("it was killed", async () => (await restarts()) > 0);
    await platform.ask(`GET /v1/apps/ledger/machines/${machine_id}/wait?state=started&timeout=60`);
    assert.equal(await count(), 5);
    await ok(`hangar machines suspend ${machine_id} --app ledger`);
    await ok(`hangar machines start ${machine_id} --app ledger`);
    assert.equal(await count(), 5);
    assert.equal((await psql("INSERT INTO orders (note) VALUES ('after')")).status, 0);
  });

  test("a restored backup has what was there then, and the volume until now is kept", async () => {
    await ok("hangar postgres backup ledger");
    const [backup] = JSON.parse(await ok("hangar postgres backups ledger --json")) as { id: string }[];
    assert.ok(backup);
    assert.equal((await psql("DELETE FROM orders")).status, 0);
    const restored = await run(`hangar postgres restore ledger ${backup.id} --json`);
    assert.equal(restored.status, 0, restored.stderr);
    const { volume, previous_volume } = JSON.parse(restored.stdout) as { volume: string; previous_volume: string };
    assert.notEqual(volume, previous_volume);
    assert.equal(previous_volume, made.volume);
    assert.equal(await count(), 6);
    const volumes = (await platform.ask("GET /v1/apps/ledger/volumes")).body as { id: string }[];
    assert.deepEqual(new Set(volumes.map(({ id }) => id)), new Set([volume, previous_volume]));
    const wrong = await run("hangar postgres restore ledger vs_none");
    assert.notEqual(wrong.status, 0);
    assert.equal(await count(), 6, "a restore that fails leaves the server as it is");
  });

  test("detach takes the login and the secret away and keeps the data; --drop deletes it", async () => {
    const { body } = await platform.ask("GET /v1/apps/web/secrets?show_secrets=true");
    const url = (body.secrets as { name: string; value?: string }[]).find(({ name }) => name === "DATABASE_URL")?.value;
    assert.match(await ok("hangar postgres detach ledger --app web"), /web is kept/);
    assert.deepEqual((await platform.ask("GET /v1/apps/web/secrets")).body.secrets, []);
    if (url) {
      const local = url.replace(/@[^/]+/, `@127.0.0.1:${port}`);
      assert.match((await psql("SELECT 1", local)).stderr, /not permitted to log in|authentication failed/);
    }
    assert.equal(await count(), 6);
    await ok("hangar postgres attach ledger --app web");
    assert.match(await ok("hangar postgres detach ledger --app web --drop"), /was deleted/);
    assert.match((await psql("SELECT 1")).stderr, /database "web" does not exist/);
  });
});
