/** fly-go as it is published, against the listener for Fly's clients: a program calls every method of its client. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { selfSigned } from "#proxy/x509.ts";
import { flyPlatform } from "../fly-listener.ts";
import { tempDir } from "../support.ts";

const source = join(import.meta.dirname, "../fly-go");

/** The built program; undefined, and the test skipped with the reason, where it cannot be built. */
function built(t: TestContext): string | undefined {
  const program = join(tempDir(), "judge");
  const made = spawnSync("go", ["build", "-o", program, "."], { cwd: source, encoding: "utf8" });
  if (made.status === 0) return program;
  t.skip(`no Go toolchain, or its modules cannot be had: ${made.error?.message ?? made.stderr.slice(0, 200)}`);
  return undefined;
}

suite("fly-go", () => {
  test("makes every call of its Machines client unmodified", async (t) => {
    const program = built(t);
    if (program === undefined) return;
    // The order fails, which the certificate says; the calls are what is judged.
    const { fly, token } = await flyPlatform(t, { HANGAR_ACME_DIRECTORY: "https://127.0.0.1:9/directory" });
    const { chain, key } = selfSigned(["own.example.com"], Date.now());
    const child = spawn(program, {
      env: {
        ...process.env,
        FLY_FLAPS_BASE_URL: fly,
        FLY_API_TOKEN: token,
        FLY_APP_NAME: "judge",
        FLY_IMAGE: "web:1",
        TLS_CHAIN: chain,
        TLS_KEY: key,
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const exited = once(child, "exit");
    const calls = (await text(child.stdout))
      .trim()
      .split("\n")
      .map((line) => JSON.parse(line) as { call: string; error?: string });
    const wrong = calls.filter(({ error }) => error !== undefined);
    t.diagnostic(`${calls.length - wrong.length} of ${calls.length} calls work`);
    assert.deepEqual(wrong, []);
    assert.deepEqual([(await exited)[0], calls.length > 50], [0, true]);
  });
});
