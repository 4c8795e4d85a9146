/** The edge proxy with real clients: curl, many slow sockets, a crowd at a sleeping machine. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { join } from "node:path";
import { suite, test } from "node:test";
import { selfSigned } from "#proxy/x509.ts";
import { PATIENCE_MS, runs, tempDir } from "../support.ts";
import { openEdgeProxy, until } from "./edge-proxy-harness.ts";

const missing = (program: string, flag = "--version"): string | undefined =>
  spawnSync(program, [flag]).error ? `there is no ${program} (apt-get install ${program})` : undefined;

async function curl(...args: string[]): Promise<string> {
  const child = spawn("curl", ["-s", "-m", String(PATIENCE_MS / 1000), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let text = "";
  child.stdout.setEncoding("latin1").on("data", (chunk: string) => {
    text += chunk;
  });
  await new Promise((resolve) => child.once("close", resolve));
  return text;
}

suite("edge proxy with foreign clients", () => {
  test("curl works with HTTP/1.0, 1.1 and 2, uploads, and a custom certificate", {
    skip: missing("curl"),
  }, async (t) => {
    const { platform, plain, secure } = await openEdgeProxy(t, (request, response) => {
      let bytes = 0;
      request.on("data", (chunk: Buffer) => {
        bytes += chunk.length;
      });
      request.on("end", () =>
        response.end(`${request.method} ${bytes} ${String(request.headers["x-forwarded-proto"])}`),
      );
    });
    const dir = tempDir();
    writeFileSync(join(dir, "large"), Buffer.alloc(8 * 1024 * 1024));
    const secureAt = ["--resolve", `web.localhost:${secure}:127.0.0.1`];
    assert.equal(await curl("--http1.0", `http://127.0.0.1:${plain}/`), "GET 0 http");
    assert.equal(await curl("-T", join(dir, "large"), `http://127.0.0.1:${plain}/`), "PUT 8388608 http");
    assert.equal(
      await curl("-H", "Transfer-Encoding: chunked", "-T", join(dir, "large"), `http://127.0.0.1:${plain}/`),
      "PUT 8388608 http",
    );
    const second = await curl(
      "-k",
      "--http2",
      "-w",
      " HTTP/%{http_version}",
      ...secureAt,
      `https://web.localhost:${secure}/`,
    );
    assert.equal(second, "GET 0 https HTTP/2");
    const sent = await curl("-k", "--http2", "-T", join(dir, "large"), ...secureAt, `https://web.localhost:${secure}/`);
    assert.equal(sent, "PUT 8388608 https");

    const own = selfSigned(["www.example.com"], Date.now());
    writeFileSync(join(dir, "ca.pem"), own.chain);
    const body = { hostname: "www.example.com", fullchain: own.chain, private_key: own.key };
    assert.equal((await platform.ask("POST /v1/apps/web/certificates/custom", { body })).status, 201);
    const named = ["--cacert", join(dir, "ca.pem"), "--resolve", `www.example.com:${secure}:127.0.0.1`];
    await until(async () => (await curl(...named, `https://www.example.com:${secure}/`)) === "GET 0 https");
  });

  test("hundreds of slow connections are closed, and others are served meanwhile (P2)", async (t) => {
    const { plain } = await openEdgeProxy(t, (_request, response) => response.end("ok"));
    const count = runs(500, 2000, 2000);
    const sockets: Socket[] = [];
    let closed = 0;
    for (let i = 0; i < count; i++) {
      const socket = connect({ port: plain, host: "127.0.0.1" });
      socket.on("error", () => {});
      socket.on("close", () => closed++);
      socket.write("GET / HTTP/1.1\r\nhost: web.localhost\r\nx: ");
      sockets.push(socket);
    }
    const drip = setInterval(() => {
      for (const socket of sockets) if (socket.writable) socket.write("a");
    }, 1000);
    t.after(() => {
      clearInterval(drip);
      for (const socket of sockets) socket.destroy();
    });
    let served = 0;
    await until(async () => {
      const response = await fetch(`http://127.0.0.1:${plain}/`);
      assert.equal(await response.text(), "ok");
      served++;
      return closed === count;
    });
    assert.ok(served > 10, `${served} served meanwhile`);
  });

  test("five hundred requests to a stopped machine cause one start and get five hundred responses (P5)", async (t) => {
    const { platform, plain, machine } = await openEdgeProxy(
      t,
      (_request, response) => response.end("awake"),
      {},
      { autostart: true },
    );
    const { body } = await platform.ask(`GET /v1/apps/web/machines/${machine}`);
    await platform.ask(`POST /v1/apps/web/machines/${machine}/stop`);
    await platform.ask(`GET /v1/apps/web/machines/${machine}/wait?state=stopped&instance_id=${body.instance_id}`);
    const ask = async (): Promise<string> => (await fetch(`http://127.0.0.1:${plain}/`)).text();
    const answers = await Promise.all(Array.from({ length: 500 }, ask));
    assert.deepEqual([...new Set(answers)], ["awake"]);
    const { body: after } = await platform.ask(`GET /v1/apps/web/machines/${machine}`);
    const starts = (after.events as { status: string; source: string }[]).filter(
      ({ status, source }) => status === "starting" && source === "proxy",
    );
    assert.equal(starts.length, 1);
  });
});
