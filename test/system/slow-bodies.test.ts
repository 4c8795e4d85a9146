/** A body that comes byte by byte, on every listener at once: each ends it by a bound of its own, and none is kept by it. */
import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { answerTo, LISTENERS } from "../http-listeners.ts";

const DRIP_MS = 1000;
/** Twice the limit, for a busy host: without a limit a client would drip for longer than a test may take. */
const PATIENCE_MS = 4 * LIMITS.request_timeout_ms;

/** Resolves with what was answered, at the end of the connection. */
async function drip(t: TestContext, name: string, start: (typeof LISTENERS)[string]): Promise<string> {
  const { open, path, headers = "", method = "POST" } = await start(t);
  const socket = open();
  const head = `${method} ${path} HTTP/1.1\r\nhost: web.localhost\r\n${headers}content-type: application/json\r\n`;
  const ended = answerTo(socket, `${head}content-length: 100000\r\n\r\n{`);
  const dripping = setInterval(() => socket.writable && socket.write(" "), DRIP_MS);
  t.after(() => {
    clearInterval(dripping);
    socket.destroy();
  });
  const late = new Promise<never>((_, reject) => {
    setTimeout(() => reject(new Error(`${name} still reads after ${PATIENCE_MS} ms`)), PATIENCE_MS).unref();
  });
  return await Promise.race([ended, late]);
}

suite("a body of one byte a second", () => {
  const all = Object.entries(LISTENERS);
  test(`is refused or cut by ${Object.keys(LISTENERS).join(", ")}`, async (t) => {
    const answers = await Promise.all(all.map(async ([name, start]) => [name, await drip(t, name, start)] as const));
    for (const [name, answer] of answers) {
      t.diagnostic(`${name}: ${answer.split("\r\n")[0] || "closed"}`);
      // Some need not read a body to refuse it.
      assert.match(answer, /^(HTTP\/1\.1 4\d\d |$)/, name);
    }
  });
});
