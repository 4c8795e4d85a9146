/** Large bodies through the edge proxy: it passes them on and keeps next to nothing (P4). */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { type IncomingMessage, request } from "node:http";
import type { Writable } from "node:stream";
import { suite, type TestContext, test } from "node:test";
import { aBackend, freePort } from "#proxy/fixtures.ts";
import { runs } from "../support.ts";
import { startProgram } from "./child.ts";

const MIB = 1024 * 1024;
const BODY_MIB = runs(128, 1024);
const MORE_MIB = 32;
const piece = Buffer.alloc(MIB, "x");

/** Writes as much, at the pace of the reader. */
function pour(into: Writable, mib: number, look: () => void): void {
  for (let left = mib; left > 0; left--) {
    look();
    if (into.write(piece)) continue;
    into.once("drain", () => pour(into, left - 1, look));
    return;
  }
  into.end();
}

/** The data plane in a process of its own, in front of a server that gives and takes large bodies. */
async function openProxy(t: TestContext): Promise<{ port: number; rss_mib(): number }> {
  const { port: upstream } = await aBackend(t, (asked, response) => {
    if (asked.method === "PUT") {
      let bytes = 0;
      asked.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
      asked.on("end", () => response.end(String(bytes)));
      return;
    }
    const mib = Number(asked.url?.slice(1));
    response.setHeader("content-length", mib * MIB);
    pour(response, mib, () => {});
  });
  const [port, secure] = [await freePort(), await freePort()];
  const child = startProgram(t, "bench/proxy/plane.ts", [port, secure, upstream].map(String));
  await child.until(/^ready$/);
  const rss_mib = (): number =>
    Number(/VmRSS:\s+(\d+) kB/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) / 1024;
  return { port, rss_mib };
}

async function ask(port: number, options: object, send?: (asked: ReturnType<typeof request>) => void) {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const asked = request(
    { host: "127.0.0.1", port, headers: { host: "web.localhost" }, agent: false, ...options },
    resolve,
  );
  asked.on("error", reject);
  if (send) send(asked);
  else asked.end();
  return await promise;
}

/** Takes `mib`, and calls `look` after each. */
async function download(port: number, mib: number, look: () => void): Promise<number> {
  const answer = await ask(port, { path: `/${mib}` });
  let bytes = 0;
  for await (const chunk of answer) {
    const before = Math.floor(bytes / MIB);
    bytes += (chunk as Buffer).length;
    if (Math.floor(bytes / MIB) > before) look();
  }
  return bytes;
}

async function upload(port: number, mib: number, look: () => void): Promise<number> {
  const answer = await ask(port, { method: "PUT", path: "/" }, (asked) => pour(asked, mib, look));
  let text = "";
  for await (const chunk of answer) text += String(chunk);
  return Number(text);
}

suite("memory of large bodies", { skip: process.platform === "linux" ? false : "memory is read from /proc" }, () => {
  test(`${BODY_MIB} MiB down and up take at most ${MORE_MIB} MiB of memory (P4)`, async (t) => {
    const { port, rss_mib } = await openProxy(t);
    // Warm: code is compiled and buffers are there.
    await download(port, 16, () => {});
    await upload(port, 16, () => {});
    const before = rss_mib();
    let most = before;
    const look = (): void => {
      most = Math.max(most, rss_mib());
    };
    assert.equal(await download(port, BODY_MIB, look), BODY_MIB * MIB);
    const down = most;
    most = before;
    assert.equal(await upload(port, BODY_MIB, look), BODY_MIB * MIB);
    t.diagnostic(`${before.toFixed(0)} MiB before, at most ${down.toFixed(0)} down and ${most.toFixed(0)} up`);
    assert.ok(Math.max(down, most) < before + MORE_MIB, `${(Math.max(down, most) - before).toFixed(0)} MiB more`);
  });

  test("a slow reader slows the machine down instead of using memory (P4)", async (t) => {
    const { port, rss_mib } = await openProxy(t);
    await download(port, 16, () => {});
    const before = rss_mib();
    const answers = await Promise.all(Array.from({ length: 20 }, () => ask(port, { path: `/${BODY_MIB}` })));
    t.after(() => answers.forEach((answer) => void answer.destroy()));
    for (const answer of answers) answer.pause();
    // A reader that does not read: all that fits into the kernel's buffers comes, and no more.
    let quiet = 0;
    for (let last = rss_mib(); quiet < 20; quiet++) {
      await new Promise((resolve) => setTimeout(resolve, 50));
      if (rss_mib() <= last + 1) continue;
      // Only then, or what creeps would look quiet.
      quiet = 0;
      last = rss_mib();
    }
    const more = rss_mib() - before;
    t.diagnostic(`${more.toFixed(0)} MiB more with ${answers.length} readers that do not read`);
    assert.ok(more < MORE_MIB, `${more.toFixed(0)} MiB more`);
  });
});
