/** The edge proxy and two more real clients: a browser with a WebSocket, and wrk at a hard limit. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import type { Server } from "node:http";
import type { Duplex } from "node:stream";
import { text } from "node:stream/consumers";
import { suite, test } from "node:test";
import { PATIENCE_MS, runs } from "../support.ts";
import { noBrowser, openBrowser } from "./browser.ts";
import { openEdgeProxy } from "./edge-proxy-harness.ts";
import { ownNetwork } from "./own-network.ts";

const GUID = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";

/** Echoes every short text message (RFC 6455); closes on command. */
function echo(socket: Duplex, key: string): void {
  const accept = createHash("sha1").update(`${key}${GUID}`).digest("base64");
  const head = ["HTTP/1.1 101 Switching Protocols", "connection: upgrade", "upgrade: websocket"];
  socket.write(`${[...head, `sec-websocket-accept: ${accept}`].join("\r\n")}\r\n\r\n`);
  let unread = Buffer.alloc(0);
  socket.on("error", () => socket.destroy());
  socket.on("data", (chunk: Buffer) => {
    unread = Buffer.concat([unread, chunk]);
    for (;;) {
      const length = (unread[1] ?? 0) & 0x7f;
      if (unread.length < 6 + length) return;
      const mask = unread.subarray(2, 6);
      const body = Buffer.from(unread.subarray(6, 6 + length).map((byte, i) => byte ^ (mask[i % 4] ?? 0)));
      const [kind = 0] = unread;
      unread = unread.subarray(6 + length);
      socket.write(Buffer.concat([Buffer.from([kind, body.length]), body]));
      if ((kind & 0x0f) === 8) socket.end();
    }
  });
}

if (await ownNetwork(import.meta.filename)) {
  suite("edge proxy with a browser and wrk", () => {
    test("a page and its WebSocket work in a browser", { skip: noBrowser }, async (t) => {
      const { plain, secure } = await openEdgeProxy(t, (asked, response) => {
        // The server of the fixture, to which the test adds what it needs.
        const { server } = asked.socket as unknown as { server: Server };
        if (server.listenerCount("upgrade") === 0)
          server.on("upgrade", (request, socket) => echo(socket, request.headers["sec-websocket-key"] ?? ""));
        response.setHeader("content-type", "text/html").end("<h1>hello</h1>");
      });
      const browser = await openBrowser(t);
      const context = await browser.newContext({ ignoreHTTPSErrors: true });
      t.after(() => context.close());
      context.setDefaultTimeout(PATIENCE_MS);
      const page = await context.newPage();
      for (const [scheme, port] of [
        ["http", plain],
        ["https", secure],
      ] as const) {
        await page.goto(`${scheme}://web.localhost:${port}/`);
        assert.equal(await page.textContent("h1"), "hello");
        const said = await page.evaluate<string[]>(`new Promise((resolve, reject) => {
        const said = [];
        const socket = new WebSocket("${scheme === "http" ? "ws" : "wss"}://" + location.host + "/socket");
        socket.onopen = () => { for (const word of ["one", "two", "three"]) socket.send(word); };
        socket.onmessage = ({ data }) => { said.push(data); if (said.length === 3) socket.close(1000); };
        socket.onclose = ({ code, wasClean }) => resolve([...said, String(code), String(wasClean)]);
        socket.onerror = () => reject(new Error("the socket failed"));
      })`);
        assert.deepEqual(said, ["one", "two", "three", "1000", "true"]);
      }
    });

    test("wrk with 64 connections: the hard limit holds across workers, and all are served (P6)", {
      skip: spawnSync("wrk", ["-v"]).error ? "there is no wrk (apt-get install wrk)" : false,
    }, async (t) => {
      const HARD = 5;
      let [open, most, seen] = [0, 0, 0];
      // When wrk ends it leaves requests behind: their places are free again before we have heard that they are gone.
      let counted_until = 0;
      const concurrency = { type: "requests", soft_limit: 2, hard_limit: HARD };
      const { plain } = await openEdgeProxy(
        t,
        (_asked, response) => {
          seen++;
          open++;
          if (performance.now() < counted_until) most = Math.max(most, open);
          setImmediate(() => {
            // Before the proxy can know that it is over.
            open--;
            response.end("ok");
          });
        },
        { HANGAR_PROXY_WORKERS: "2" },
        { concurrency },
      );
      const before = seen;
      const seconds = runs(4, 30, 60);
      counted_until = performance.now() + (seconds - 0.5) * 1000;
      const child = spawn("wrk", ["-t1", "-c64", `-d${seconds}s`, "--timeout", "60s", `http://127.0.0.1:${plain}/`], {
        stdio: ["ignore", "pipe", "inherit"],
      });
      const said = await text(child.stdout);
      assert.doesNotMatch(said, /Non-2xx|Socket errors/, said);
      const served = Number(/(\d+) requests in/.exec(said)?.[1]);
      assert.ok(served > 0, said);
      // Those that were on their way when wrk ended were answered to nobody.
      assert.ok(seen - before >= served, `${seen - before} of ${served}`);
      assert.ok(most <= HARD, `${most} at once`);
      t.diagnostic(`${served} requests, at most ${most} at once (hard limit ${HARD})`);
    });
  });
}
