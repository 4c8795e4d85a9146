/** Images as other programs make them, started as machines: debootstrap's /dev, skopeo's and umoci's archives. */
import assert from "node:assert/strict";
import { execFile, spawnSync } from "node:child_process";
import { chmodSync, mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { promisify } from "node:util";
import { file, makeImage, ociArchive, tar, writeLayout } from "#drivers/images/fixtures.ts";
import { packageRoot, packagesMissing } from "../debian-root.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { tempDir, until } from "../support.ts";
import { command, type ForeignMachines, foreignMachines } from "./foreign-machines.ts";

const PACKAGES = ["dash", "coreutils", "grep"];
const without = (...names: string[]): string | false => {
  const missing = names.filter((name) => spawnSync("which", [name]).status !== 0);
  return missing.length === 0 ? false : `these programs are missing: ${missing.join(" ")}`;
};
/** Numbers as in the kernel's list of devices. */
const DEVICES = {
  null: [1, 3],
  zero: [1, 5],
  full: [1, 7],
  random: [1, 8],
  urandom: [1, 9],
  tty: [5, 0],
  console: [5, 1],
};
const RUN = { init: { exec: ["sleep", "1000"] } };

/** What debootstrap leaves in /dev, and what a system that ran leaves in /proc and /sys. */
function debootstrapDevices(root: string): void {
  for (const folder of ["dev/pts", "dev/shm", "proc", "sys/fs"]) mkdirSync(join(root, folder), { recursive: true });
  for (const [name, [major, minor]] of Object.entries(DEVICES))
    command("mknod", "-m", "666", join(root, "dev", name), "c", String(major), String(minor));
  symlinkSync("/proc/self/fd", join(root, "dev/fd"));
  for (const [fd, name] of ["stdin", "stdout", "stderr"].entries())
    symlinkSync(`/proc/self/fd/${fd}`, join(root, "dev", name));
  symlinkSync("pts/ptmx", join(root, "dev/ptmx"));
  symlinkSync("/proc/kcore", join(root, "dev/core"));
  writeFileSync(join(root, "dev/left-by-somebody"), "a file");
  writeFileSync(join(root, "proc/version"), "not the kernel's");
}

suite("images made by other programs", { skip: realMachinesMissing() ?? packagesMissing(PACKAGES) }, () => {
  const ends: (() => unknown)[] = [];
  const dir = tempDir();
  const root = join(dir, "root");
  const tarball = join(dir, "root.tar");
  let machines: ForeignMachines;

  before(async () => {
    mkdirSync(root);
    packageRoot(root, PACKAGES);
    chmodSync(join(root, "tmp"), 0o1777);
    debootstrapDevices(root);
    command("tar", "-C", root, "--numeric-owner", "-cf", tarball, ".");
    machines = await foreignMachines({ after: (end) => void ends.push(end as () => unknown) });
  });

  after(async () => {
    for (const end of ends) await end();
    rmSync(dir, { recursive: true, force: true });
  });

  /** The machine runs on the kernel's own /dev, /proc and /sys, not on what the image brought. */
  async function livesOnItsOwn(id: string): Promise<void> {
    const seen = await machines.sh(
      id,
      "echo text | cat /dev/stdin; readlink /dev/fd; ls /dev | grep -c left; grep -c Linux /proc/version; stat -c %t,%T /dev/null",
    );
    assert.equal(seen, "text\n/proc/self/fd\n0\n1\n1,3\n");
  }

  test("a root file system of debootstrap starts, as a tar and as a folder", async (t) => {
    const brought = await machines.bring("deb:tar", tarball);
    assert.equal(brought.status, 201, brought.text);
    await livesOnItsOwn(await machines.run(t, { image: "deb:tar", ...RUN }));
    const env = { ...process.env, HANGAR_URL: machines.base_url, HANGAR_TOKEN: machines.token };
    const cli = join(import.meta.dirname, "../../src/cli/main.ts");
    const args = [cli, "images", "import", "deb:folder", root];
    const { stderr } = await promisify(execFile)(process.execPath, args, { env });
    assert.doesNotMatch(stderr, /left out/);
    await livesOnItsOwn(await machines.run(t, { image: "deb:folder", ...RUN }));
  });

  test("skopeo's archives and layouts start: docker, OCI, and OCI with zstd", {
    skip: without("skopeo"),
  }, async (t) => {
    const layout = writeLayout(join(dir, "layout"), makeImage([readFileSync(tarball)], { Cmd: ["sleep", "1000"] }));
    const kinds: Record<string, string[]> = {
      "docker-archive": [],
      "oci-archive": ["--dest-compress-format", "gzip"],
    };
    for (const [kind, more] of Object.entries(kinds)) {
      const file = join(dir, `${kind}.tar`);
      command("skopeo", "--insecure-policy", "copy", "-q", ...more, `oci:${layout}`, `${kind}:${file}:${kind}:1`);
      const brought = await machines.bring(`${kind}:1`, file);
      assert.equal(brought.status, 201, brought.text);
      await livesOnItsOwn(await machines.run(t, { image: `${kind}:1` }));
    }
  });

  test("an image packed by umoci starts with its config", { skip: without("umoci") }, async (t) => {
    const layout = join(dir, "umoci");
    command("umoci", "init", "--layout", layout);
    command("umoci", "new", "--image", `${layout}:1`);
    command("umoci", "insert", "--image", `${layout}:1`, root, "/");
    const run = ["sh", "-c", "{ pwd; id -u; } > /tmp/where; exec sleep 1000"].flatMap((word) => ["--config.cmd", word]);
    command("umoci", "config", "--image", `${layout}:1`, ...run);
    command("umoci", "config", "--image", `${layout}:1`, "--config.workingdir", "/srv/app", "--config.user", "nobody");
    command("tar", "-C", layout, "-cf", join(dir, "umoci.tar"), ".");
    const brought = await machines.bring("umoci:1", join(dir, "umoci.tar"));
    assert.equal(brought.status, 201, brought.text);
    const id = await machines.run(t, { image: "umoci:1" });
    await livesOnItsOwn(id);
    const said = "/srv/app\n65534\n";
    await until("the machine says where it is", async () => (await machines.sh(id, "cat /tmp/where || true")) === said);
  });

  test("a replaced image still starts by its digest", async (t) => {
    const version = (word: string): Buffer => tar(file("version", word));
    const layered = (word: string): Buffer => ociArchive(makeImage([readFileSync(tarball), version(word)]));
    const first = (await machines.bring("again:1", layered("old"))).body.digest as string;
    const release = { definition: {}, image: "again:1", image_digest: first };
    assert.equal((await machines.ask("POST /v1/apps/web/releases", { body: release })).status, 201);
    const second = (await machines.bring("again:1", layered("new"))).body.digest as string;
    assert.notEqual(first, second);
    assert.equal((await machines.ask("POST /v1/images/gc", { body: { all: true } })).status, 200);
    const { reference } = (await machines.ask("GET /v1/apps/web/images/resolve?image=again:1")).body;
    assert.equal(reference, `again:1@${second}`);
    const wanted: Record<string, string> = {
      [`again@${first}`]: "old",
      [`again:1@${first}`]: "old",
      [reference]: "new",
    };
    for (const [image, said] of Object.entries(wanted)) {
      const id = await machines.run(t, { image, ...RUN });
      assert.equal(await machines.sh(id, "cat /version"), said, image);
      const { digest } = (await machines.ask(`GET /v1/apps/web/machines/${id}`)).body.image_ref;
      assert.ok(image.endsWith(digest), image);
    }
    const missing = await machines.ask("GET /v1/apps/web/images/resolve?image=127.0.0.1:9/none:1");
    assert.deepEqual([missing.status, missing.body.status], [412, "registry_unreachable"]);
  });
});
