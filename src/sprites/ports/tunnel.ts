/** One TCP connection to a port of a sprite over a WebSocket, in the messages of the Sprites API. */
import { once } from "node:events";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { CLOSE_CODES, type WebSocketSession } from "#http/websocket.ts";
import type { SessionCounts } from "#machines/runtime/machine-sessions.ts";
import type { SpriteService } from "../service.ts";
import type { SpriteView } from "../types.ts";
import { type Connection, type Dialer, dialSprite } from "./dial.ts";

interface TunnelParts {
  sprites: SpriteService;
  driver: Dialer;
  counts: SessionCounts;
  clock: Clock;
}

const PORT_MAX = 65_535;
const ITSELF = new Set(["", "localhost", "127.0.0.1", "::1", "0.0.0.0", "::"]);
/** The SDK loses what comes at once with the word that it is connected. */
const FIRST_GAP_MS = 20;

/** The first message names the port. The sprite stays awake while the connection lasts. */
export async function serveTunnel(socket: WebSocketSession, sprite: SpriteView, parts: TunnelParts): Promise<void> {
  const { sprites, driver, counts, clock } = parts;
  const messages = socket.messages();
  const { value: text } = await messages.next();
  if (text === undefined) return;
  try {
    const { host, port } = targetOf(text.toString(), sprite.name);
    await sprites.use(
      sprite,
      async (ref) =>
        await counts.during(ref.id, async () => {
          const connection = await dialSprite(driver, ref, port, socket.signal);
          const leave = (): void => connection.close();
          socket.signal.addEventListener("abort", leave, { once: true });
          try {
            await socket.send(JSON.stringify({ status: "connected", target: `${host}:${port}` }));
            await clock.sleep(FIRST_GAP_MS, socket.signal);
            await Promise.race([outward(socket, connection), inward(messages, connection)]);
            socket.end(CLOSE_CODES.done, "the connection has ended");
          } finally {
            leave();
          }
        }),
      socket.signal,
    );
  } catch (thrown) {
    if (socket.signal.aborted) return;
    await socket.send(JSON.stringify({ status: "error", error: messageOf(thrown) }));
    socket.end(CLOSE_CODES.done, "there is no connection");
  }
}

function targetOf(text: string, name: string): { host: string; port: number } {
  const { host = "localhost", port } = JSON.parse(text) as { host?: unknown; port?: unknown };
  if (typeof port !== "number" || !Number.isInteger(port) || port < 1 || port > PORT_MAX)
    fail("invalid_request", `port is a number from 1 to ${PORT_MAX}`);
  if (typeof host !== "string" || !(ITSELF.has(host) || host === name))
    fail("invalid_request", "host is the sprite itself: localhost", {
      hint: "other hosts are reached by a program in the sprite",
    });
  return { host: host || "localhost", port };
}

async function outward(socket: WebSocketSession, { pieces }: Connection): Promise<void> {
  try {
    for (let next = await pieces.next(); !next.done; next = await pieces.next()) await socket.send(next.value);
  } catch {
    // It was reset, which a WebSocket has no word for.
  }
}

/** The SDK has no word for the end of one direction: its end is that of the connection. */
async function inward(messages: AsyncIterator<string | Buffer, undefined>, { writable }: Connection): Promise<void> {
  for (let next = await messages.next(); !next.done; next = await messages.next()) {
    if (typeof next.value === "string") continue;
    if (writable.destroyed) return;
    if (!writable.write(next.value)) await once(writable, "drain").catch(() => {});
  }
}
