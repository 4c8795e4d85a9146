/** The ports that a sprite's programs listen on, as a live stream: all of them, then every change. */
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { portOf } from "#core/listening.ts";
import { CLOSE_CODES, type WebSocketSession } from "#http/websocket.ts";
import type { Ref, RuntimeDriver } from "#machines/runtime/driver.ts";
import { SPRITE_LIMITS } from "../limits.ts";
import type { SpriteService } from "../service.ts";
import type { SpriteView } from "../types.ts";

interface WatchParts {
  sprites: SpriteService;
  driver: Pick<RuntimeDriver, "ps">;
  clock: Clock;
}

type Ports = Map<string, Port>;

interface Port {
  port: number;
  address: string;
  pid: number;
}

/** The sprite stays awake while somebody watches. */
export async function watchPorts(
  socket: WebSocketSession,
  sprite: SpriteView,
  { sprites, driver, clock }: WatchParts,
): Promise<void> {
  void ignore(socket);
  try {
    await sprites.use(sprite, (ref) => tellPorts(socket, () => portsOf(driver, ref), clock), socket.signal);
  } catch (thrown) {
    if (socket.signal.aborted) return;
    socket.end(CLOSE_CODES.done, messageOf(thrown).slice(0, REASON_CHARS));
  }
}

async function tellPorts(socket: WebSocketSession, look: () => Promise<Ports>, clock: Clock): Promise<void> {
  const say = (type: string, port: object): Promise<void> => socket.send(JSON.stringify({ type, ...port }));
  let known = await look();
  await say("port_list", { ports: [...known.values()].map((port) => ({ type: "port_opened", ...port })) });
  while (!socket.signal.aborted) {
    await clock.sleep(SPRITE_LIMITS.port_look_ms, socket.signal);
    const now = await look();
    for (const port of missingIn(now, known)) await say("port_closed", port);
    for (const port of missingIn(known, now)) await say("port_opened", port);
    known = now;
  }
}

const missingIn = (some: Ports, all: Ports): Port[] =>
  [...all].flatMap(([address, port]) => (some.has(address) ? [] : [port]));

/** Fits into a WebSocket close reason (123 bytes) in any script. */
const REASON_CHARS = 40;

/** Reads on, so that the end of the connection is seen. */
async function ignore(socket: WebSocketSession): Promise<void> {
  const messages = socket.messages();
  while (!(await messages.next()).done);
}

/** By address and port; the first process that has a socket open counts as its owner. */
async function portsOf(driver: WatchParts["driver"], ref: Ref): Promise<Ports> {
  const found: Ports = new Map();
  for (const { pid, listen_sockets } of await driver.ps(ref))
    for (const { proto, address } of listen_sockets)
      if (proto === "tcp" && !found.has(address))
        found.set(address, { port: portOf(address), address: address.slice(0, address.lastIndexOf(":")), pid });
  return found;
}
