/** Slow clients and flooding clients must not affect others (P2, P3). */
import assert from "node:assert/strict";
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { suite, test } from "node:test";
import { LIMITS } from "#core/limits.ts";
import { runs, tempDir, within } from "../support.ts";
import { type Daemon, startDaemon } from "./daemon.ts";

const DRIPPING = runs(500, 2000, 2000);
const UPLOADS = 200;
const BODIES = runs(24, 100, 200);
const MIB = 1024 * 1024;

function open({ base_url }: Daemon): Socket {
  const { hostname, port } = new URL(base_url);
  return connect(Number(port), hostname).on("error", () => {});
}

const residentBytes = ({ child }: Daemon): number =>
  Number(/VmRSS:\s+(\d+)/.exec(readFileSync(`/proc/${child.pid}/status`, "utf8"))?.[1]) * 1024;

async function timed(work: () => Promise<unknown>): Promise<number> {
  const started = performance.now();
  await work();
  return performance.now() - started;
}

suite("hostile HTTP clients", () => {
  test(`${DRIPPING} connections that never finish their headers are closed, and others are served (P2)`, async (t) => {
    const daemon = await startDaemon(t, tempDir());
    const honest = async (): Promise<void> => {
      const response = await fetch(`${daemon.base_url}/healthz`);
      await response.text();
      assert.equal(response.status, 200);
    };
    await honest();
    const started = performance.now();
    let connected = 0;
    const drips = Array.from({ length: DRIPPING }, () => open(daemon).once("connect", () => connected++));
    // Not events.once: a reset is an end like any other here.
    const closed = Promise.all(drips.map((socket) => new Promise((resolve) => socket.resume().once("close", resolve))));
    for (const socket of drips) socket.write("GET /healthz HTTP/1.1\r\nHost: h\r\nX-Drip: ");
    const drip = setInterval(() => {
      for (const socket of drips) if (socket.writable) socket.write("a");
    }, 500);
    t.after(() => clearInterval(drip));
    const waits: number[] = [];
    let all = false;
    void closed.then(() => {
      all = true;
    });
    while (!all) waits.push(await timed(honest));
    const took = performance.now() - started;
    assert.equal(connected, DRIPPING);
    waits.sort((a, b) => a - b);
    t.diagnostic(
      `all closed after ${Math.round(took)} ms; honest client p50 ${waits[waits.length >> 1]?.toFixed(1)} ms, max ${waits.at(-1)?.toFixed(0)} ms of ${waits.length}`,
    );
    assert.ok(took < within(LIMITS.headers_timeout_ms + 5000), `closed after ${took} ms`);
    assert.ok((waits.at(-1) ?? 0) < within(3000));
  });

  test(`${UPLOADS} announced uploads of 1 GiB are refused at once without using memory (P3)`, async (t) => {
    const daemon = await startDaemon(t, tempDir());
    await fetch(`${daemon.base_url}/healthz`);
    const before = residentBytes(daemon);
    const answers = await Promise.all(
      Array.from({ length: UPLOADS }, async () => {
        const socket = open(daemon);
        socket.write(
          `POST /v1/apps HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer ${daemon.token}\r\nContent-Type: application/json\r\nContent-Length: 1073741824\r\n\r\n`,
        );
        socket.write(Buffer.alloc(64 * 1024, 32));
        const [first] = (await once(socket, "data")) as [Buffer];
        socket.destroy();
        return first.toString().split(" ")[1];
      }),
    );
    assert.deepEqual([...new Set(answers)], ["413"]);
    const grown = (residentBytes(daemon) - before) / MIB;
    t.diagnostic(`resident memory grew by ${grown.toFixed(1)} MiB`);
    assert.ok(grown < 64, `grew by ${grown} MiB`);
  });

  test(`${BODIES} bodies of 8 MiB without a token are not read, and those of one token are limited`, async (t) => {
    const daemon = await startDaemon(t, tempDir());
    await daemon.call("POST", "/v1/apps", { app_name: "web" });
    const made = await daemon.call("POST", "/v1/orgs/personal/tokens", { kind: "org" });
    const before = residentBytes(daemon);
    /** All but the last byte of a body, which never comes. */
    const hold = async (authorization: string): Promise<string> => {
      const socket = open(daemon);
      t.after(() => socket.destroy());
      let answer = "";
      socket.on("data", (chunk) => {
        answer += chunk.toString();
      });
      socket.write(
        `POST /v1/apps/web/machines HTTP/1.1\r\nHost: h\r\n${authorization}Content-Type: application/json\r\nContent-Length: ${8 * MIB}\r\n\r\n`,
      );
      const sent = new Promise((resolve) => socket.write(Buffer.alloc(8 * MIB - 1, 32), resolve));
      await Promise.race([sent, once(socket, "data"), once(socket, "close")]);
      // An answer that was written before the body was taken comes with the next turn.
      await fetch(`${daemon.base_url}/healthz`);
      return answer.split(" ")[1] ?? "";
    };
    const strangers = await Promise.all(Array.from({ length: BODIES }, () => hold("")));
    assert.deepEqual([...new Set(strangers)], ["401"]);
    const forged = await Promise.all(Array.from({ length: BODIES }, () => hold("Authorization: Bearer hf1_x\r\n")));
    assert.deepEqual([...new Set(forged)], ["401"]);
    const unread = (residentBytes(daemon) - before) / MIB;
    const token = `Authorization: Bearer ${String(made.body["token"])}\r\n`;
    const own = await Promise.all(Array.from({ length: BODIES }, () => hold(token)));
    const refused = own.filter((status) => status === "429").length;
    assert.equal(BODIES - refused, LIMITS.bodies_bytes_per_token / (8 * MIB));
    const grown = (residentBytes(daemon) - before) / MIB;
    t.diagnostic(`resident memory grew by ${unread.toFixed(1)} MiB without a token, ${grown.toFixed(1)} MiB with one`);
    assert.ok(unread < 144, `grew by ${unread} MiB`);
    assert.ok(grown < 256, `grew by ${grown} MiB`);
    const honest = await daemon.call("POST", "/v1/apps", { app_name: "other" });
    assert.equal(honest.status, 201);
  });
});
