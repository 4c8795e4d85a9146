import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { call, callLater, callsMissing, syncFileSystem } from "./calls.ts";

suite("system calls", { skip: callsMissing() }, () => {
  test("a system call on another thread reports its own errno during concurrent failures", async () => {
    const open = callLater("open", ["str", "int"]);
    const closeLater = callLater("close", ["int"]);
    const close = call("close", ["int"]);
    const codeOf = async (made: Promise<number>): Promise<string> =>
      await made.then(
        () => "none",
        (thrown: unknown) => (thrown as { code: string }).code,
      );
    const beside = setInterval(() => assert.throws(() => close("", -1), { code: "EBADF" }), 0);
    try {
      const wanted = Array.from({ length: 90 }, (_, index) => index % 3);
      const made = wanted.map((kind) => {
        if (kind === 0) return open("", "/nowhere/at/all", 0);
        return kind === 1 ? open("", "/dev/null/below", 0) : closeLater("", -1);
      });
      assert.throws(() => close("", -1), { code: "EBADF" });
      const codes = await Promise.all(made.map(codeOf));
      assert.deepEqual(
        codes,
        wanted.map((kind) => ["ENOENT", "ENOTDIR", "EBADF"][kind]),
      );
    } finally {
      clearInterval(beside);
    }
  });

  test("syncFileSystem accepts any folder and reports a missing one", async () => {
    await syncFileSystem("/proc/self");
    await assert.rejects(syncFileSystem("/nowhere/at/all"), { code: "ENOENT" });
  });
});
