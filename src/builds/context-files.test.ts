/** What an organization may put on the disk with its build contexts. */
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { TAR_END, tarHeader, tarPadding } from "#archive/tar.ts";
import { virtualClock } from "#core/fixtures.ts";
import { tempDir } from "../../test/support.ts";
import { ContextFiles } from "./context-files.ts";
import { BUILD_LIMITS, type BuildLimits } from "./limits.ts";

const WEB = { org_id: "o1", app_id: "web" };
const OTHER = { org_id: "o2", app_id: "other" };
const HOUR = 3_600_000;
const digestOf = (text: string): string => createHash("sha256").update(text).digest("hex");

function tarOf(texts: readonly string[]): Buffer {
  const entry = { type: "file", mode: 0o644, uid: 0, gid: 0, mtime: 0 } as const;
  const packed = texts.flatMap((text) => [
    tarHeader({ ...entry, path: digestOf(text), size: text.length }),
    Buffer.from(text),
    tarPadding(text.length),
  ]);
  return Buffer.concat([...packed, TAR_END]);
}

async function* sent(texts: readonly string[]): AsyncGenerator<Buffer> {
  yield tarOf(texts);
}

function open(t: TestContext, limits: Partial<BuildLimits> = {}) {
  const dir = tempDir();
  t.after(() => rmSync(dir, { recursive: true, force: true }));
  const clock = virtualClock(Date.now());
  const files = new ContextFiles({ dir: join(dir, "files"), clock, limits: { ...BUILD_LIMITS, ...limits } });
  return { dir, clock, files, kept: (org_id: string) => readdirSync(join(dir, "files", org_id)) };
}

const names = (count: number, prefix = ""): string[] => Array.from({ length: count }, (_, i) => `${prefix}${i}`);

suite("files of build contexts", () => {
  test("small files count by their disk usage, and their number is limited", async (t) => {
    const { files, kept } = open(t, { org_files: 10, org_files_bytes: 2 ** 20 });
    await files.receive(WEB, sent(names(10)));
    await assert.rejects(files.receive(WEB, sent(["more"])), { code: "limit_reached", message: /org_files\)/ });
    assert.equal(kept("o1").length, 10);
    await files.receive(OTHER, sent(names(10)));
    const tight = open(t, { org_files_bytes: 4096 * 5 });
    await assert.rejects(tight.files.receive(WEB, sent(names(6))), {
      code: "limit_reached",
      message: /org_files_bytes/,
    });
    assert.equal(tight.kept("o1").length, 5);
  });

  test("concurrent uploads share the remaining space", async (t) => {
    const { files, kept } = open(t, { org_files: 20 });
    const uploads = names(10).map((prefix) => files.receive(WEB, sent(names(5, `${prefix}-`))));
    const failed = (await Promise.allSettled(uploads)).filter(({ status }) => status === "rejected");
    assert.ok(failed.length >= 6, `${failed.length} were refused`);
    assert.equal(kept("o1").length, 20);
  });

  test("refused, duplicate and expired files are not counted", async (t) => {
    const { files, kept, clock } = open(t, { org_files: 3, file_kept_ms: HOUR });
    for (let i = 0; i < 5; i++) await files.receive(WEB, sent(["a", "b"]));
    async function* broken(): AsyncGenerator<Buffer> {
      yield tarOf(["c"]).subarray(0, 512);
      throw new Error("the client has gone");
    }
    for (let i = 0; i < 5; i++) await assert.rejects(files.receive(WEB, broken()), /gone/);
    await files.receive(WEB, sent(["c"]));
    await assert.rejects(files.receive(WEB, sent(["d"])), { code: "limit_reached" });
    clock.jump(2 * HOUR);
    await files.expire();
    assert.deepEqual(kept("o1"), []);
    await files.receive(WEB, sent(["d", "e", "f"]));
  });

  test("an upload is released when its reader stops", async (t) => {
    const { files } = open(t);
    let ended = false;
    async function* longer(): AsyncGenerator<Buffer> {
      try {
        yield tarOf(["a"]);
        for (;;) yield Buffer.from("more");
      } finally {
        ended = true;
      }
    }
    await files.receive(WEB, longer());
    assert.ok(ended);
  });

  test("a context is measured as often as its files are in it, and stops being written when its build does", async (t) => {
    const { files, dir } = open(t);
    await files.receive(WEB, sent(["four"]));
    const sha256 = digestOf("four");
    const measured = await files.measure(WEB, [sha256, sha256, digestOf("gone")]);
    assert.deepEqual(measured, { missing: [digestOf("gone")], bytes: 8 });
    for (const owner of [OTHER, { ...WEB, app_id: "api" }])
      assert.deepEqual((await files.measure(owner, [sha256])).missing, [sha256], "files of others are not there");
    const stop = new AbortController();
    stop.abort(new Error("cancelled"));
    await assert.rejects(files.write(WEB, [{ path: "a", sha256 }], join(dir, "context"), stop.signal), /cancelled/);
  });
});
