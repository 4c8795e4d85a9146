/** Connections from this computer to a private port of a machine, through the platform's API. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Server, type Socket } from "node:net";
import { type RawData, WebSocket } from "ws";
import { ClientError } from "#client/client.ts";
import type { Context } from "../verb.ts";
import { type TunnelTarget, TunnelTargets } from "./targets.ts";

const ROUTE = "GET /v1/apps/:app_name/machines/:machine_id/tunnel";

/** Half-close: the sender sends no more data; WebSocket itself has none. */
const END = JSON.stringify({ end: true });

export interface TunnelOptions extends TunnelTarget {
  listen: { host: string; port: number };
}

export interface LocalPort {
  host: string;
  port: number;
  /** The machine of the newest connection. */
  machine_id(): string;
  close(): Promise<void>;
}

/** Listens on a local port and forwards each connection to the machine. Fails when the machine is unreachable now. */
export async function openLocalPort(context: Context, options: TunnelOptions): Promise<LocalPort> {
  const targets = new TunnelTargets(context.client, options);
  await targets.check();
  const open = new Set<Socket>();
  const server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => {
    open.add(socket.on("error", () => {}));
    socket.once("close", () => open.delete(socket));
    void carry(context, targets, options.port, socket).catch((thrown: unknown) => {
      socket.destroy();
      context.say(`connection refused: ${thrown instanceof Error ? thrown.message : String(thrown)}`);
    });
  });
  await listen(server, options.listen);
  const { address, port } = server.address() as AddressInfo;
  return {
    host: address,
    port,
    machine_id: () => targets.machine_id,
    async close() {
      for (const socket of open) socket.destroy();
      server.close();
      await once(server, "close");
    },
  };
}

async function listen(server: Server, { host, port }: TunnelOptions["listen"]): Promise<void> {
  server.listen(port, host);
  await once(server, "listening").catch((thrown: unknown) => {
    const { code } = thrown as NodeJS.ErrnoException;
    throw new ClientError(0, {
      error: `cannot listen on ${host}:${port}: ${code === "EADDRINUSE" ? "the port is in use here" : String(code)}`,
      hint: `name another local port: hangar proxy 1${String(port).padStart(4, "0")}:…, or 0 for a free one`,
    });
  });
}

/** Forwards one connection until both sides have ended. */
async function carry(context: Context, targets: TunnelTargets, port: number, socket: Socket): Promise<void> {
  socket.pause();
  const session = await targets.connect(async (params) => {
    const { url, headers } = context.client.handshake(ROUTE, { params, query: { port } });
    const opening = new WebSocket(url, { headers, perMessageDeflate: false });
    // No data is read before a listener is attached.
    opening.once("open", () => opening.pause());
    return await opened(opening);
  });
  if (socket.destroyed) return session.terminate();
  session.on("message", (data: RawData, binary: boolean) => {
    if (!binary) return void socket.end();
    if (socket.write(data as Buffer)) return;
    session.pause();
    socket.once("drain", () => session.resume());
  });
  session.once("close", (code: number, reason: Buffer) => {
    // A local program that has already ended its side does not need the error.
    if (code !== 1000 && !socket.readableEnded && !socket.destroyed)
      context.say(`connection lost: ${reason.toString() || code}`);
    socket.destroySoon();
  });
  socket.on("data", (bytes: Buffer) => {
    socket.pause();
    session.send(bytes, () => socket.resume());
  });
  socket.once("end", () => session.send(END));
  socket.once("close", () => session.close(1000));
  session.resume();
  socket.resume();
}

/** Resolves with the open WebSocket; undefined when the handshake was refused, which only another request explains. */
async function opened(session: WebSocket): Promise<WebSocket | undefined> {
  try {
    await once(session, "open");
    return session.on("error", () => {});
  } catch {
    return undefined;
  }
}
