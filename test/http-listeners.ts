/** Every HTTP listener of the platform, each started by itself, to be spoken to in raw bytes. */
import { randomBytes } from "node:crypto";
import { connect, type Socket } from "node:net";
import type { TestContext } from "node:test";
import { type ConnectionOptions, connect as connectTls } from "node:tls";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { Sealer } from "#core/sealer.ts";
import { listenForPeers } from "#hosts/channel.ts";
import { aBackend, aPlane, aTarget } from "#proxy/fixtures.ts";
import { startNode } from "../src/replication/commands.ts";
import { openControl } from "../src/testing/control.ts";
import { startPlatform } from "../src/testing/emulator.ts";
import { inside } from "./inside.ts";
import { testPlatform } from "./platform.ts";
import { tempDir } from "./support.ts";

export interface Listener {
  open(): Socket;
  /** A path that answers 200 to a good request. */
  path: string;
  /** More header lines of a good request. */
  headers?: string;
  method?: string;
  body?: string;
}

export const tcp = (url: string): Socket => {
  const { hostname, port } = new URL(url);
  return connect(Number(port), hostname.replace(/^\[|\]$/g, ""));
};

export async function openChannel(t: TestContext): Promise<{ address: string; sealer: Sealer }> {
  const sealer = new Sealer(randomBytes(32));
  const calls = { ping: async () => "pong" };
  const listen = { host: "127.0.0.1", port: 0 };
  const listener = await listenForPeers({ listen, sealer, calls, streams: {}, clock: systemClock, log: silentLog });
  t.after(() => listener.close());
  return { address: listener.address, sealer };
}

/** A connection to the hosts' channel, by hand. */
function channelSocket(address: string, options: ConnectionOptions): Socket {
  const { hostname, port } = new URL(`https://${address}`);
  return connectTls({
    host: hostname,
    port: Number(port),
    ciphers: "TLS_AES_128_GCM_SHA256",
    minVersion: "TLSv1.3",
    checkServerIdentity: () => undefined,
    ...options,
  });
}

const NODE = {
  host: "127.0.0.1",
  port: 0,
  election: { kind: "primary" },
  clock: systemClock,
  log: (): void => {},
  onFailure: (): void => {},
} as const;

export const LISTENERS: Record<string, (t: TestContext) => Promise<Listener>> = {
  "the API": async (t) => {
    const { base_url } = await testPlatform(t);
    return { open: () => tcp(base_url), path: "/healthz" };
  },
  "a machine's socket, with the gateway": async (t) => {
    const platform = await inside(t);
    const machine = await platform.machine("m");
    return { open: () => connect(machine.socket), path: "/v1/gateway/list" };
  },
  "the edge proxy": async (t) => {
    const backend = await aBackend(t, (request, response) => request.resume().on("end", () => response.end("ok")));
    const plane = await aPlane(t);
    await plane.serve({ targets: [aTarget(backend.port)] });
    return { open: () => connect(plane.port, "127.0.0.1"), path: "/" };
  },
  "a replication node": async (t) => {
    const node = await startNode({ ...NODE, dir: tempDir() });
    t.after(() => node.close());
    return { open: () => tcp(node.url), path: "/info" };
  },
  "the proxy of a replication node": async (t) => {
    const backend = await aBackend(t, (request, response) => request.resume().on("end", () => response.end("ok")));
    const app = new URL(`http://127.0.0.1:${backend.port}`);
    const proxy = { host: "127.0.0.1", port: 0, app, db: "db", local: ["/*"], primary: [], queue_ms: 60_000 };
    const { node, close } = await startNode({ ...NODE, dir: tempDir(), proxy });
    t.after(() => close());
    return { open: () => tcp(node.proxy?.url ?? ""), path: "/" };
  },
  "the hosts' channel": async (t) => {
    const { address, sealer } = await openChannel(t);
    const pskCallback = () => ({ identity: "hangar", psk: sealer.derive("channel between hosts") });
    const more = { method: "POST", body: "{}" };
    return { open: () => channelSocket(address, { pskCallback }), path: "/ping", ...more };
  },
  "the emulator's control port": async (t) => {
    const emulator = await startPlatform();
    t.after(() => emulator.close());
    const control = await openControl(emulator, { host: "127.0.0.1", port: 0 });
    t.after(() => control.close());
    const headers = `authorization: Bearer ${emulator.token}\r\n`;
    return { open: () => tcp(control.url), path: "/clock", headers };
  },
};

/** Sends bytes and reads until the answer has its head, or the connection is closed. */
export async function answerTo(socket: Socket, bytes: string): Promise<string> {
  socket.on("error", () => {});
  socket.write(bytes);
  let answer = "";
  socket.on("data", (chunk) => {
    answer += chunk.toString("latin1");
    if (answer.includes("\r\n\r\n")) socket.destroy();
  });
  await new Promise((resolve) => socket.once("close", resolve));
  return answer;
}
