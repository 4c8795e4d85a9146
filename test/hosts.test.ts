/** Hosts from the config file: regions, sizes, what happens when there is no room, and when one fails. */
import assert from "node:assert/strict";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { readSettings } from "#core/settings.ts";
import { bench, IMAGE } from "./machine-bench.ts";
import { tempDir } from "./support.ts";

const HOSTS = `
[[hosts]]
id = "0a01"
region = "ams"
zone = "z1"
cpus = 4
memory_mb = 1024

[[hosts]]
id = "0a02"
region = "ams"
zone = "z2"
cpus = 4
memory_mb = 1024

[[hosts]]
id = "0f01"
region = "fra"
cpus = 16
memory_mb = 8192
`;

async function house(t: Parameters<typeof bench>[0], toml = HOSTS) {
  const file = join(tempDir(), "hangar.toml");
  writeFileSync(file, toml);
  return await bench(t, { HANGAR_CONFIG: file });
}

suite("hosts and placement", () => {
  test("machines spread over a region's hosts until it is full; then 412 with free capacity and fits_in", async (t) => {
    const { create, on, wait } = await house(t);
    const config = { image: IMAGE, guest: { cpus: 1, memory_mb: 512 } };
    const made = [];
    for (let i = 0; i < 4; i++) made.push((await create({ config })).body);
    assert.deepEqual(made.map(({ host }) => String(host)).sort(), ["0a01", "0a01", "0a02", "0a02"]);
    assert.equal(made[0].region, "ams", "the first host's region is the default");
    const full = await create({ config });
    assert.deepEqual([full.status, full.body.status, full.body.retryable], [412, "insufficient_capacity", true]);
    assert.match(full.body.error, /insufficient resources.*1 cpus and 512 MB requested in region ams.*fit in fra/);
    assert.deepEqual(full.body.requested, { region: "ams", cpus: 1, memory_mb: 512 });
    assert.deepEqual(full.body.fits_in, ["fra"]);
    assert.deepEqual(full.body.free[0], { host: "0a01", region: "ams", zone: "z1", cpus: 2, memory_mb: 0 });
    assert.equal((await create({ config, region: "fra" })).body.region, "fra");
    await wait(made[0].id, "started");
    await on(`POST ${made[0].id}/stop`);
    await wait(made[0].id, "settled");
    assert.equal((await create({ config })).status, 200, "what is stopped makes room");
    const refused = await on(`POST ${made[0].id}/start`);
    assert.deepEqual([refused.status, refused.body.status], [412, "insufficient_capacity"]);
    assert.match(refused.body.error, /could not reserve resource for machine: insufficient memory/);
  });

  test("a machine too large for every host, an unknown region and an update too large for its host are refused", async (t) => {
    const { create, on, wait } = await house(t);
    const large = await create({ config: { image: IMAGE, guest: { cpus: 64, memory_mb: 65_536 } } });
    assert.deepEqual([large.status, large.body.fits_in], [412, []]);
    const nowhere = await create({ region: "mars" });
    assert.deepEqual([nowhere.status, nowhere.body.details[0].allowed], [400, "ams, fra"]);
    const { id } = (await create()).body;
    await wait(id, "started");
    const grown = await on(`POST ${id}`, { config: { image: IMAGE, guest: { memory_mb: 2048 } } });
    assert.equal(grown.body.status, "insufficient_capacity");
    assert.equal((await on(`GET ${id}`)).body.config.guest.memory_mb, 256, "nothing was changed");
  });

  test("machines of a failed host report it and refuse actions, until the host is back", async (t) => {
    const { create, on, ask, wait } = await house(t);
    const main = (await create()).body;
    const standby = (await create({ skip_launch: true, config: { image: IMAGE, standbys: [main.id] } })).body;
    await wait(main.id, "started");
    assert.notEqual(main.host, standby.host);
    assert.equal((await ask(`POST /v1/platform/hosts/${main.host}/fail`)).status, 200);
    assert.equal((await wait(standby.id, "started")).status, 200);
    assert.equal((await on(`GET ${main.id}`)).body.host_status, "unreachable");
    assert.equal((await on(`POST ${main.id}/stop`)).body.status, "host_unreachable");
    const list = async (status: string) => await ask(`GET /v1/orgs/personal/machines?host_status=${status}`);
    assert.deepEqual(
      (await list("unknown,unreachable")).body.machines.map(({ id }: { id: string }) => id),
      [main.id],
    );
    assert.deepEqual((await list("unknown")).body.machines, []);
    assert.equal((await list("lost")).body.details[0].allowed, "ok, unknown, unreachable");
    const status = (await ask("GET /v1/apps/web/status")).body;
    assert.deepEqual([status.state, status.machines], ["degraded", { unreachable: 1, started: 1 }]);
    assert.match(status.reason, new RegExp(`its host ${main.host} is unreachable`));
    assert.notEqual((await create()).body.host, main.host);
    await ask(`POST /v1/platform/hosts/${main.host}/recover`);
    assert.equal((await on(`POST ${main.id}/stop`)).status, 200);
    assert.equal((await ask("POST /v1/platform/hosts/ffff/fail")).status, 404);
    const own = await ask("DELETE /v1/platform/hosts/0f01");
    assert.deepEqual([own.status, own.body.status], [409, "conflict"], "it is declared in the config");
  });

  test("regions and hosts can be read", async (t) => {
    const { ask, create } = await house(t);
    await create({ region: "fra", config: { image: IMAGE, guest: { cpus: 2, memory_mb: 1024 } } });
    const { nearest, regions } = (await ask("GET /v1/platform/regions")).body;
    assert.equal(nearest, "ams");
    assert.deepEqual(
      regions.map(({ code, capacity }: { code: string; capacity: number }) => [code, capacity]),
      [
        ["ams", 8],
        ["fra", 14],
      ],
    );
    const { hosts } = (await ask("GET /v1/platform/hosts")).body;
    assert.deepEqual(
      [hosts[2].id, hosts[2].zone, hosts[2].used_cpus, hosts[2].used_memory_mb],
      ["0f01", "0f01", 2, 1024],
    );
  });

  test("without declared hosts there is one, in region local, that accepts any region", async (t) => {
    const { create, ask } = await bench(t);
    assert.equal((await create()).body.region, "local");
    assert.equal((await create({ region: "iad" })).body.region, "iad");
    assert.deepEqual(
      (await ask("GET /v1/platform/regions")).body.regions.map(({ code }: { code: string }) => code),
      ["local"],
    );
  });

  test("an invalid table in the config file is reported with its position", () => {
    const dir = tempDir();
    const read = (toml: string) => {
      writeFileSync(join(dir, "c.toml"), toml);
      return readSettings([], { HANGAR_CONFIG: join(dir, "c.toml") });
    };
    assert.equal(read(HOSTS).hosts.length, 3);
    for (const [toml, words] of [
      ['[[hosts]]\nid = "1"', /number 1: id is four lower-case hex digits/],
      ['[[hosts]]\nid = "0001"\nregion = "A B"', /region is lower-case/],
      ['[[hosts]]\nid = "0001"\ncpus = -1', /cpus is a whole number/],
      ['[[hosts]]\nid = "0001"\n[[hosts]]\nid = "0001"', /same id/],
      ["hosts = 1", /\[\[hosts\]\] tables/],
    ] as const) {
      assert.throws(() => read(toml), words);
    }
  });
});
