/** Push and pull with a foreign client (skopeo), machines that boot what was pushed, a platform killed during a push. */
import assert from "node:assert/strict";
import { execFile, spawn, spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, readdirSync, readFileSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { promisify } from "node:util";
import { file, makeImage, tar, writeLayout } from "#drivers/images/fixtures.ts";
import { postgresMissing, startPostgres } from "../postgres.ts";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { tempDir, until } from "../support.ts";
import { startDaemon } from "./daemon.ts";
import { command, type ForeignMachines, foreignMachines } from "./foreign-machines.ts";

const missing = spawnSync("which", ["skopeo"]).status === 0 ? undefined : "skopeo is missing";

interface Registry {
  base_url: string;
  token: string;
}

const hostOf = ({ base_url }: Registry): string => new URL(base_url).host;
const address = (registry: Registry, name: string): string => `docker://${hostOf(registry)}/${name}`;

/** Not in this thread: the platform may be in it. */
async function skopeo(...args: string[]): Promise<string> {
  const { stdout } = await promisify(execFile)("skopeo", ["--insecure-policy", ...args], { maxBuffer: 2 ** 24 });
  return stdout;
}

const login = ({ token }: Registry, side: "" | "src-" | "dest-"): string[] => [
  `--${side}creds=anyone:${token}`,
  `--${side}tls-verify=false`,
];

const push = async (registry: Registry, layout: string, name: string, ...more: string[]): Promise<string> =>
  await skopeo("copy", "-q", ...more, ...login(registry, "dest-"), `oci:${layout}`, address(registry, name));

suite("images in the platform's registry", { skip: missing ?? realMachinesMissing() }, () => {
  const dir = tempDir();
  const ends: (() => unknown)[] = [];
  let machines: ForeignMachines;
  let root: Buffer;
  const layout = (name: string, version: string): string =>
    writeLayout(join(dir, name), makeImage([root, tar(file("version", version))], { Cmd: ["sleep", "1000"] }));

  before(async () => {
    mkdirSync(join(dir, "root"));
    busyboxLayer(join(dir, "root"));
    command("tar", "-C", join(dir, "root"), "-cf", join(dir, "root.tar"), ".");
    root = readFileSync(join(dir, "root.tar"));
    machines = await foreignMachines({ after: (end) => void ends.push(end as () => unknown) });
  });

  after(async () => {
    for (const end of ends) await end();
    rmSync(dir, { recursive: true, force: true });
  });

  test("a machine boots an image by the platform's address and by registry.hangar", async (t) => {
    await push(machines, layout("one", "one"), "personal/web:1");
    const port = new URL(machines.base_url).port;
    for (const registry of [hostOf(machines), `localhost:${port}`, "registry.hangar"]) {
      const id = await machines.run(t, { image: `${registry}/personal/web:1` });
      assert.equal(await machines.sh(id, "cat /version"), "one");
    }
    const { body } = await machines.ask("GET /v1/images");
    assert.ok(body.images.some((image: { name: string }) => image.name === "registry.hangar/personal/web:1"));
  });

  test("podman pushes an image and pulls it again, with a token as its password", async (t) => {
    if (spawnSync("podman", ["--version"]).error) return t.skip("podman is not installed (apt-get install podman)");
    const storage = ["--root", join(dir, "podman"), "--runroot", join(dir, "podman-run"), "--storage-driver", "vfs"];
    const podman = async (...args: string[]): Promise<string> =>
      (await promisify(execFile)("podman", [...storage, ...args])).stdout.trim();
    const id = await podman("import", "-q", "--change", 'CMD ["sleep", "1000"]', join(dir, "root.tar"), "podman:1");
    const access = ["-q", "--tls-verify=false", `--creds=anyone:${machines.token}`];
    await podman("push", ...access, id, address(machines, "personal/podman:1"));
    const machine = await machines.run(t, { image: "registry.hangar/personal/podman:1" });
    assert.match(await machines.sh(machine, "ps"), /sleep 1000/);
    await podman("rmi", "-f", id);
    await podman("pull", ...access, address(machines, "personal/podman:1"));
    const [found] = JSON.parse(await podman("image", "inspect", `${hostOf(machines)}/personal/podman:1`));
    assert.deepEqual(found.Config.Cmd, ["sleep", "1000"]);
  });

  test("after a second push of a tag, new machines boot the new image, and the old one in use cannot be deleted", async (t) => {
    await push(machines, layout("old", "old"), "personal/again:1");
    const image = "registry.hangar/personal/again:1";
    const old = await machines.run(t, { image });
    await push(machines, layout("new", "new"), "personal/again:1", "--dest-compress-format", "gzip");
    const fresh = await machines.run(t, { image });
    assert.equal(await machines.sh(fresh, "cat /version"), "new");
    const { body } = await machines.ask(`GET /v1/apps/web/machines/${old}`);
    const { digest } = body.image_ref as { digest: string };
    const remove = async (): Promise<Response> =>
      await fetch(`${machines.base_url}/v2/personal/again/manifests/${digest}`, {
        method: "DELETE",
        headers: { authorization: `Bearer ${machines.token}` },
      });
    const refused = await remove();
    assert.equal(refused.status, 409);
    assert.match(await refused.text(), new RegExp(`"DENIED".*machine ${old}`));
    await machines.ask(`POST /v1/apps/web/machines/${old}/stop`);
    await machines.ask(`GET /v1/apps/web/machines/${old}/wait?state=stopped&timeout=60`);
    await machines.ask(`POST /v1/apps/web/machines/${old}/start`);
    await machines.ask(`GET /v1/apps/web/machines/${old}/wait?state=started&timeout=60`);
    assert.equal(await machines.sh(old, "cat /version"), "old");
    await machines.ask(`DELETE /v1/apps/web/machines/${old}?force=true`);
    await until("nothing needs it any more", async () => (await remove()).status === 202);
  });

  test("skopeo pulls the pushed image unchanged, lists tags, inspects and deletes", async () => {
    const made = layout("back", "back");
    await push(machines, made, "personal/team/back:1");
    await skopeo(
      "copy",
      "-q",
      ...login(machines, "dest-"),
      ...login(machines, "src-"),
      address(machines, "personal/team/back:1"),
      address(machines, "personal/team/back:2"),
    );
    const out = join(dir, "pulled");
    await skopeo("copy", "-q", ...login(machines, "src-"), address(machines, "personal/team/back:2"), `oci:${out}:1`);
    const blobs = (folder: string): string[] => readdirSync(join(folder, "blobs/sha256")).sort();
    // skopeo packs plain layers on the way in; what it then pulls twice is the same.
    await skopeo("copy", "-q", ...login(machines, "src-"), address(machines, "personal/team/back:1"), `oci:${out}-1:1`);
    assert.deepEqual(blobs(out), blobs(`${out}-1`));
    const listed = JSON.parse(
      await skopeo("list-tags", ...login(machines, ""), address(machines, "personal/team/back")),
    );
    assert.deepEqual(listed.Tags, ["1", "2"]);
    const inspected = JSON.parse(
      await skopeo("inspect", ...login(machines, ""), address(machines, "personal/team/back:1")),
    );
    assert.equal(inspected.Layers.length, 2);
    await skopeo("delete", ...login(machines, ""), address(machines, "personal/team/back:1"));
    await assert.rejects(
      skopeo("inspect", ...login(machines, ""), address(machines, "personal/team/back:1")),
      /manifest unknown/,
    );
  });

  test("another organization's machine cannot boot the image, and a missing image is named", async () => {
    await push(machines, layout("mine", "mine"), "personal/mine:1");
    await machines.ask("POST /v1/orgs", { body: { name: "other" } });
    await machines.ask("POST /v1/apps", { body: { app_name: "theirs", org_slug: "other" } });
    const create = async (app: string, image: string) =>
      await machines.ask(`POST /v1/apps/${app}/machines`, { body: { config: { image } } });
    for (const [app, image] of [
      ["theirs", "registry.hangar/personal/mine:1"],
      ["web", "registry.hangar/personal/mine:2"],
      ["web", "registry.hangar/other/mine:1"],
    ] as const) {
      const { status, body } = await create(app, image);
      assert.deepEqual([status, body.status], [400, "image_not_found"], image);
      assert.match(body.error, /was not pushed/);
    }
  });
});

suite("registry after kill -9", { skip: missing }, () => {
  test("a push interrupted by a kill can be repeated, and leaves nothing incomplete", async (t) => {
    const data_dir = tempDir();
    const dir = tempDir();
    const image = makeImage([tar(file("noise", randomBytes(24_000_000).toString("base64")))]);
    const layout = writeLayout(join(dir, "layout"), image);
    const first = await startDaemon(t, data_dir);
    const uploads = join(data_dir, "registry/uploads");
    const args = [
      "--insecure-policy",
      "copy",
      "-q",
      ...login(first, "dest-"),
      `oci:${layout}`,
      address(first, "personal/big:1"),
    ];
    const pushing = spawn("skopeo", args, { stdio: "ignore" });
    const ended = once(pushing, "exit");
    const arrived = (): boolean =>
      readdirSync(uploads).some(
        (name) => (statSync(join(uploads, name), { throwIfNoEntry: false })?.size ?? 0) > 100_000,
      );
    await until("part of a layer has arrived", arrived, { every_ms: 5 });
    await first.child.kill();
    const [status] = (await ended) as [number | null];
    assert.notEqual(status, 0);
    const second = await startDaemon(t, data_dir);
    const tags = await second.call("GET", "/v2/personal/big/tags/list");
    assert.equal(tags.status, 404);
    await push(second, layout, "personal/big:1");
    await skopeo(
      "copy",
      "-q",
      ...login(second, "src-"),
      address(second, "personal/big:1"),
      `oci:${join(dir, "back")}:1`,
    );
    const { body } = await second.call("GET", "/v1/registry/repositories");
    assert.equal((body["repositories"] as unknown[]).length, 1);
  });
});

suite("registry of several control processes without a shared object store", {
  skip: missing ?? postgresMissing(),
}, () => {
  test("skopeo pushes, pulls and deletes through alternating processes, whichever has the bytes", async (t) => {
    const dir = tempDir();
    const postgres = await startPostgres();
    t.after(() => postgres.stop());
    const flags = ["--role", "control", "--database", await postgres.database(), "--log-level", "error"];
    const one = await startDaemon(t, tempDir(), flags);
    const { body } = await one.call("POST", "/v1/platform/host_join_tokens");
    const other_dir = tempDir();
    const other = await startDaemon(t, other_dir, [...flags, "--join-token", String(body["token"])]);
    const shared = tar(file("shared", randomBytes(3_000_000).toString("base64")));
    const layout = (name: string): string =>
      writeLayout(join(dir, name), makeImage([shared, tar(file("version", name))], { Cmd: [name] }));
    const pulled = async (from: Registry, name: string): Promise<string[]> => {
      const out = join(dir, `${name.replaceAll(/[/:]/g, "-")}-of-${new URL(from.base_url).port}`);
      await skopeo("copy", "-q", ...login(from, "src-"), address(from, name), `oci:${out}:1`);
      return readdirSync(join(out, "blobs/sha256")).sort();
    };

    await push(one, layout("first"), "personal/web:1");
    await push(other, layout("second"), "personal/web:2");
    await push(one, layout("third"), "personal/api:1");
    const stored = readdirSync(join(other_dir, "registry/objects"), { recursive: true, encoding: "utf8" });
    const sizes = stored.map((name) => statSync(join(other_dir, "registry/objects", name)).size);
    assert.ok(Math.max(...sizes) < 1_000_000, "the layer that the other process has was not sent again");
    for (const name of ["personal/web:1", "personal/web:2", "personal/api:1"]) {
      const blobs = await pulled(one, name);
      assert.equal(blobs.length, 4, "manifest, config and two layers");
      assert.deepEqual(await pulled(other, name), blobs, `${name} is the same through both`);
    }
    const listed = JSON.parse(await skopeo("list-tags", ...login(other, ""), address(other, "personal/web")));
    assert.deepEqual(listed.Tags, ["1", "2"]);

    const headers = { authorization: `Bearer ${other.token}` };
    const begun = await fetch(`${one.base_url}/v2/personal/web/blobs/uploads/`, {
      method: "POST",
      headers: { authorization: `Bearer ${one.token}` },
    });
    const place = begun.headers.get("location") ?? "";
    const strange = await fetch(`${other.base_url}${place}`, { method: "PATCH", headers, body: "bytes" });
    assert.equal(strange.status, 404, "an upload belongs to the process that began it");
    assert.match(await strange.text(), /BLOB_UPLOAD_UNKNOWN.*another control process/s);

    await skopeo("delete", ...login(other, ""), address(other, "personal/web:1"));
    await assert.rejects(pulled(one, "personal/web:1"), /manifest unknown/);
    assert.equal((await pulled(one, "personal/api:1")).length, 4, "what another manifest needs stays");

    await other.child.kill();
    await assert.rejects(pulled(one, "personal/web:2"), /on the disk of process|does not respond|image_elsewhere|503/);
    assert.equal((await pulled(one, "personal/api:1")).length, 4);
  });
});
