/** docs/from-docker-compose.md as it is written: a compose project with `build:`, PostgreSQL, a worker and a migration, on real machines. */
import assert from "node:assert/strict";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { buildahMissing } from "#drivers/builds/builder-root.ts";
import { freePort } from "#proxy/fixtures.ts";
import { ociArchive } from "../../src/cli/images/oci-archive.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { shell, tempDir } from "../support.ts";
import { volumesMissing } from "../volumes.ts";
import { NPX, ROOT } from "./child.ts";
import { command, type ForeignMachines, foreignMachines } from "./foreign-machines.ts";
import { postgresRoot, postgresRootMissing, SERVER, START } from "./postgres-root.ts";

const IMAGES = { "hangar/shop-base:1": ["python3"], "hangar/postgres:1": SERVER };
const skip = realMachinesMissing() ?? volumesMissing() ?? buildahMissing() ?? postgresRootMissing(["python3"]);

/** The images that the page takes for granted, of this box's packages. */
async function bring(machines: ForeignMachines, dir: string): Promise<void> {
  for (const [name, packages] of Object.entries(IMAGES)) {
    const root = postgresRoot(join(dir, name), packages);
    const layer = join(dir, "layer.tar");
    command("tar", "-C", root, "-cf", layer, ".");
    const config = name.includes("postgres") ? { Entrypoint: [START] } : { Cmd: ["python3"] };
    const pieces: Uint8Array[] = [];
    for await (const piece of await ociArchive(layer, config)) pieces.push(piece);
    const { status, text } = await machines.bring(name, Buffer.concat(pieces));
    assert.equal(status, 201, text);
    rmSync(root, { recursive: true });
  }
}

suite("from docker compose", { skip, timeout: 30 * 60_000 }, () => {
  const ends: (() => unknown)[] = [];
  const dir = tempDir();
  let machines: ForeignMachines;
  before(async () => {
    machines = await foreignMachines({ after: (end) => void ends.push(end as () => unknown) });
    await bring(machines, dir);
  });
  after(async () => {
    for (const end of ends) await end();
  });

  test("the page's commands build and deploy its services, which find each other, and remove them", async () => {
    const page = readFileSync(join(ROOT, "docs/from-docker-compose.md"), "utf8");
    const blocks = [...page.matchAll(/```sh compose\n([\s\S]*?)```/g)].map(([, block = ""]) => block);
    assert.equal(blocks.length, 3);
    const cwd = join(dir, "home");
    mkdirSync(cwd);
    const env = { cwd, HOME: cwd, HANGAR_DATA_DIR: machines.data_dir };
    // The port of the page may be someone's on this box; everything else is as it is written.
    const script = blocks.join("").replaceAll("8093", String(await freePort()));
    const { status, stdout, stderr } = await shell(`set -eu -o pipefail\n${NPX}\n${script}`, env);
    assert.equal(status, 0, `${stdout}\n${stderr}`);
    assert.match(stdout, /^order 1$/m);
    assert.match(stdout, /^1 orders, 1 done$/m);
    assert.match(stderr, /Running migrate to its end/);
    assert.equal((await machines.ask("GET /v1/apps/shop")).status, 404);
    assert.equal((await shell("ls -A", env)).stdout, "");
  });
});
