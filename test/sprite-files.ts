/** What files of sprites must do, by the Sprites SDK, whichever driver runs them. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import { request } from "node:http";
import { suite, type TestContext, test } from "node:test";
import { FilesystemError, type FilesystemWatchEvent, type SpriteFilesystem } from "@fly/sprites";
import type { OpenedSprite } from "./sprite-commands.ts";
import { until } from "./support.ts";

type Open = (t: TestContext) => Promise<OpenedSprite>;

const MB = 1024 * 1024;

async function failure(work: Promise<unknown>): Promise<[code: string, path: string]> {
  const thrown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  assert.ok(thrown instanceof FilesystemError, String(thrown));
  return [thrown.code, thrown.path];
}

/** A request as of other clients; its path is below `fs`. */
async function ask({ base_url, token, sprite }: OpenedSprite, target: string, body?: unknown) {
  const [method = "GET", path = ""] = target.split(" ");
  const response = await fetch(`${base_url}/v1/sprites/${sprite.name}/fs/${path}`, {
    method,
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  return { status: response.status, body: (await response.json()) as any };
}

export function spriteFilesSuite(name: string, open: Open, skip?: string): void {
  suite(`files of sprites: ${name}`, { skip }, () => {
    contents(open);
    folders(open);
    attributes(open);
    refusals(open);
    watches(open);
  });
}

function contents(open: Open): void {
  test("a file is written, read, replaced, appended and removed", async (t) => {
    const { sprite } = await open(t);
    const fs = sprite.filesystem("/srv");
    await fs.writeFile("deep/folder/note.txt", "one\n");
    assert.equal(await fs.readFile("/srv/deep/folder/note.txt", "utf8"), "one\n");
    await fs.writeFile("deep/folder/note.txt", "two\n");
    await fs.appendFile("deep/folder/note.txt", "three\n");
    assert.equal(await fs.readFile("deep/folder/note.txt", "utf8"), "two\nthree\n");
    await fs.writeJSON("/srv/data.json", { zoë: [1, 2] });
    assert.deepEqual(await fs.readJSON("data.json"), { zoë: [1, 2] });
    await fs.writeFile("empty", "");
    assert.equal((await fs.readFile("empty")).length, 0);
    await fs.rm("data.json");
    assert.equal(await fs.exists("data.json"), false);
    await fs.rm("data.json", { force: true });
  });

  test("a file of 24 MB arrives as it was sent, in both directions", async (t) => {
    const { sprite } = await open(t);
    const fs = sprite.filesystem("/");
    const data = randomBytes(24 * MB);
    const sum = (bytes: Uint8Array): string => createHash("sha256").update(bytes).digest("hex");
    await fs.writeFile("/tmp/large", data);
    assert.equal((await fs.stat("/tmp/large")).size, data.length);
    assert.equal(sum(await fs.readFile("/tmp/large", null)), sum(data));
  });

  test("a write that breaks off leaves the old file, and nothing else", async (t) => {
    const opened = await open(t);
    const { base_url, token, sprite } = opened;
    const fs = sprite.filesystem("/");
    await fs.writeFile("/srv/kept", "old");
    const url = `${base_url}/v1/sprites/${sprite.name}/fs/write?path=/srv/kept`;
    const headers = { authorization: `Bearer ${token}`, "content-length": 64 * MB };
    const upload = request(url, { method: "PUT", headers });
    upload.on("error", () => {});
    const broken = new Promise<void>((closed) => void upload.once("close", closed));
    await new Promise<void>((sent) => void upload.write(Buffer.alloc(4 * MB, "new"), () => sent()));
    upload.destroy();
    await broken;
    assert.equal(await fs.readFile("/srv/kept", "utf8"), "old");
    await until("nothing is left", async () => (await fs.readdir("/srv")).join() === "kept");
  });

  test("readers see the old file or the new one, never a part", async (t) => {
    const { sprite } = await open(t);
    const fs = sprite.filesystem("/");
    const [old, fresh] = ["a".repeat(2 * MB), "b".repeat(2 * MB)];
    await fs.writeFile("/srv/file", old);
    const writes = (async () => {
      for (const text of [fresh, old, fresh]) await fs.writeFile("/srv/file", text);
    })();
    for (let n = 0; n < 6; n++) {
      const seen = await fs.readFile("/srv/file", "utf8");
      assert.ok(seen === old || seen === fresh, "a mixture was read");
    }
    await writes;
  });
}

function folders(open: Open): void {
  test("folders are made, listed with types, patterns and recursion, and removed", async (t) => {
    const { sprite } = await open(t);
    const fs = sprite.filesystem("/srv");
    await fs.mkdir("/srv/src/lib", { recursive: true });
    for (const file of ["src/a.ts", "src/b.js", "src/lib/c.ts", "read me.md"]) await fs.writeFile(file, file);
    assert.deepEqual(await fs.readdir("."), ["read me.md", "src"]);
    assert.deepEqual(await fs.readdir("src", { recursive: true }), ["a.ts", "b.js", "lib", "lib/c.ts"]);
    assert.deepEqual(await fs.readdir(".", { recursive: true, pattern: "*.ts" }), ["src/a.ts", "src/lib/c.ts"]);
    assert.deepEqual(await fs.readdir(".", { recursive: true, pattern: "src/*.[jt]s" }), ["src/a.ts", "src/b.js"]);
    assert.deepEqual(await fs.readdir(".", { recursive: true, pattern: "**/lib/*" }), ["src/lib/c.ts"]);
    const types = await fs.readdir("src", { withFileTypes: true });
    assert.deepEqual(
      types.map((entry) => [entry.name, entry.isDirectory(), entry.isFile()]),
      [
        ["a.ts", false, true],
        ["b.js", false, true],
        ["lib", true, false],
      ],
    );
    await fs.mkdir("plain", { mode: 0o700 });
    const plain = (await fs.readdir(".", { withFileTypes: true })).find((entry) => entry.name === "plain");
    assert.ok(plain?.isDirectory());
    assert.deepEqual(await fs.readdir("plain"), []);
    assert.deepEqual(await failure(fs.rm("src")), ["ENOTEMPTY", "/srv/src"]);
    await fs.rm("src", { recursive: true });
    assert.deepEqual(await fs.readdir("."), ["plain", "read me.md"]);
  });

  test("a delete says what it has removed, and a stat shows a folder", async (t) => {
    const opened = await open(t);
    const fs = opened.sprite.filesystem("/srv");
    await fs.writeFile("tree/one/two", "2");
    const { body: shown } = await ask(opened, "GET stat?path=tree/one&workingDir=/srv");
    assert.deepEqual(
      [shown.type, shown.isDir, shown.path, shown.name, shown.mode],
      ["directory", true, "/srv/tree/one", "one", "0755"],
    );
    const { body } = await ask(opened, "DELETE delete?path=/srv/tree&recursive=true");
    assert.deepEqual(body, { deleted: ["/srv/tree/one/two", "/srv/tree/one", "/srv/tree"], count: 3 });
  });

  test("files and folders are renamed and copied", async (t) => {
    const { sprite } = await open(t);
    const fs = sprite.filesystem("/srv");
    await fs.writeFile("from/deep/file", "text", { mode: 0o640 });
    await fs.rename("from", "to");
    await fs.copyFile("to/deep/file", "copy");
    assert.equal((await fs.stat("copy")).mode, 0o640);
    assert.deepEqual(await failure(fs.copyFile("to", "all")), ["EISDIR", "/srv/to"]);
    await fs.copyFile("to", "all", { recursive: true, preserveAttrs: true });
    assert.equal(await fs.readFile("all/deep/file", "utf8"), "text");
    const [first, second] = await Promise.all([fs.stat("to/deep/file"), fs.stat("all/deep/file")]);
    assert.deepEqual(first.mtime, second.mtime);
    assert.deepEqual(await failure(fs.copyFile("to", "to/deep/itself", { recursive: true })), ["EINVAL", "/srv/to"]);
    assert.deepEqual(await failure(fs.rename("none", "some")), ["ENOENT", "/srv/none"]);
  });
}

function attributes(open: Open): void {
  test("modes and owners are changed, also of whole trees and by the sprite's own names", async (t) => {
    const opened = await open(t);
    const fs = opened.sprite.filesystem("/srv");
    await fs.writeFile("tree/run.sh", "#!/bin/sh\n");
    await fs.chmod("tree/run.sh", 0o755);
    assert.equal((await fs.stat("tree/run.sh")).mode, 0o755);
    await fs.chmod("tree", 0o700, { recursive: true });
    await fs.chown("tree", { uid: 1000, gid: "root", recursive: true });
    const { body } = await ask(opened, "GET stat?path=/srv/tree/run.sh");
    assert.deepEqual([body.mode, body.uid, body.gid], ["0700", 1000, 0]);
    await fs.chown("tree/run.sh", { uid: "root" });
    assert.equal((await ask(opened, "GET stat?path=/srv/tree/run.sh")).body.uid, 0);
    const bad = await ask(opened, "POST chown", { path: "/srv/tree", uid: "nobody-here" });
    assert.equal(bad.status, 400);
    assert.match(bad.body.message, /\/etc\/passwd has no nobody-here/);
    await fs.chown("tree/run.sh", { uid: 1000 });
    await fs.writeFile("tree/run.sh", "#!/bin/sh\ntrue\n");
    const kept = (await ask(opened, "GET stat?path=/srv/tree/run.sh")).body;
    assert.deepEqual([kept.mode, kept.uid], ["0700", 1000], "a write keeps owner and mode");
  });
}

function refusals(open: Open): void {
  test("errors have the code of the system call, a kind that clients know, and the path", async (t) => {
    const opened = await open(t);
    const fs = opened.sprite.filesystem("/srv");
    await fs.writeFile("file", "");
    assert.deepEqual(await failure(fs.readFile("none")), ["ENOENT", "/srv/none"]);
    assert.deepEqual(await failure(fs.stat("none")), ["ENOENT", "/srv/none"]);
    assert.deepEqual(await failure(fs.readdir("none")), ["ENOENT", "/srv/none"]);
    assert.deepEqual(await failure(fs.rm("none")), ["ENOENT", "/srv/none"]);
    assert.deepEqual(await failure(fs.chmod("none", 0o600)), ["ENOENT", "/srv/none"]);
    assert.deepEqual(await failure(fs.readFile("/srv")), ["EISDIR", "/srv"]);
    assert.deepEqual(await failure(fs.writeFile("/srv", "")), ["EISDIR", "/srv"]);
    assert.deepEqual(await failure(fs.readFile("file/below")), ["ENOTDIR", "/srv/file/below"]);
    assert.deepEqual(await failure(fs.rm("/", { recursive: true })), ["UNKNOWN", "/"]);
    assert.deepEqual(await failure(fs.mkdir("no/such/parent")), ["ENOENT", "/srv/no/such/parent/.keep"]);
    const { status, body } = await ask(opened, "GET read?path=/none");
    assert.deepEqual(
      [status, body.error, body.code, body.path],
      [404, "ENOENT: no such file or directory, open '/none'", "ENOENT", "/none"],
    );
    for (const [target, text] of [
      ["GET list", /path is missing/],
      ["GET list?path=a&workingDir=b", /workingDir is not absolute/],
      [`GET read?path=/${"x".repeat(5000)}`, /file_path_bytes/],
      ["GET read?path=/a%00b", /zero byte/],
    ] as const) {
      const refused = await ask(opened, target);
      assert.equal(refused.status, 400, target);
      assert.match(refused.body.message, text);
    }
    assert.equal((await ask(opened, "POST chmod", { path: "/srv", mode: "rwx" })).status, 400);
    assert.equal((await ask(opened, "GET watch")).status, 426);
  });
}

function watches(open: Open): void {
  const collect = async (fs: SpriteFilesystem, t: TestContext, recursive: boolean) => {
    const watcher = await fs.watch("/srv/seen", { recursive });
    t.after(() => watcher.close());
    const seen: FilesystemWatchEvent[] = [];
    watcher.on("event", (event: FilesystemWatchEvent) => seen.push(event));
    await until("it watches", () => seen.some(({ type }) => type === "subscribed"));
    const has = (event: string, path: string): boolean =>
      seen.some((one) => one.event === event && one.path === `/srv/seen/${path}`);
    return { watcher, seen, has };
  };

  test("changes are told as they happen, in new folders too", async (t) => {
    const { sprite } = await open(t);
    const fs = sprite.filesystem("/srv");
    await fs.mkdir("seen", { recursive: true });
    const { seen, has, watcher } = await collect(fs, t, true);
    await fs.writeFile("seen/new/deep/file", "text");
    await until("the file is told", () => has("create", "new/deep/file"));
    await fs.chmod("seen/new/deep/file", 0o600);
    await until("the mode is told", () => has("chmod", "new/deep/file"));
    await fs.rename("seen/new/deep/file", "seen/moved");
    await until("the move is told", () => has("rename", "new/deep/file") && has("create", "moved"));
    await fs.rm("seen/moved");
    await until("the end is told", () => has("remove", "moved"));
    const file = seen.find(({ path, event }) => path === "/srv/seen/new/deep/file" && event === "chmod");
    assert.equal(file?.isDir, false);
    assert.equal(file?.size, 4);
    assert.ok(Date.parse(file?.timestamp ?? "") > 0);
    watcher.close();
    await until("it has ended", () => watcher.isClosed());
  });

  test("without recursion folders below are not watched, and what is not there ends the watch", async (t) => {
    const { sprite } = await open(t);
    const fs = sprite.filesystem("/srv");
    await fs.mkdir("seen/below", { recursive: true });
    const { has } = await collect(fs, t, false);
    await fs.writeFile("seen/below/hidden", "");
    await fs.writeFile("seen/told", "");
    await until("the file is told", () => has("create", "told"));
    assert.equal(has("create", "below/hidden"), false);
    const watcher = await fs.watch("/none");
    const error = await watcher.next();
    assert.deepEqual([error?.type, error?.message], ["error", "ENOENT: no such file or directory, watch '/none'"]);
    assert.equal(await watcher.next(), null);
  });
}
