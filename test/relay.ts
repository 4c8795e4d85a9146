/** A TCP relay in front of a server, which a test slows down, silences, cuts in one direction or counts on. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

/** `out`: from the client to the server; `in`: back. */
export type Direction = "out" | "in";

export interface Relay {
  port: number;
  /**
   * Nothing is forwarded, as behind a firewall that forgot the connection; also new ones hang. The client is told
   * nothing; the server's kernel asks after its peer and ends the connection after `KEEPALIVE_MS`.
   */
  silence(): void;
  /**
   * What goes in these directions waits until `restore`, and then arrives late: as TCP does it when packets were dropped
   * for a while. That one side has closed the connection waits with it.
   */
  hold(...directions: readonly Direction[]): void;
  /**
   * Nothing more is read from clients until `restore`: what they send fills the buffers of the kernel, and then waits in
   * them, as on a link that was cut.
   */
  stall(): void;
  /** The end of flights to PostgreSQL that contain `text` is never sent: the server has done it all, and waits. */
  holdSync(text: string): void;
  /** Forwards again what comes from now on; what was swallowed stays lost, so old connections stay silent. */
  restore(): void;
  /** Connections that were silenced stay so; new ones are forwarded. */
  connections(): number;
  /** Every piece is held back for so long, in each direction. */
  delay_ms: number;
  /** Replies that were waited for since the last call: what a caller sends at once is one trip. */
  trips(): number;
  /** Called with every piece from a client, before it is forwarded or held back. */
  onSent: (piece: Buffer) => void;
  close(): Promise<void>;
}

/** What ends a flight of statements in PostgreSQL's protocol. */
const SYNC = Buffer.from([0x53, 0, 0, 0, 4]);

/**
 * `tcp_keepalives_idle`, `_interval` and `_count` of our sessions, which the server's end of a relay does not have: it is
 * a Unix socket. Without this every silence would take connections of the server for ever, until it has none left.
 */
const KEEPALIVE_MS = 25_000;

interface Pair {
  client: Socket;
  server: Socket;
  silent: boolean;
}

function fallSilent(pair: Pair): void {
  if (pair.silent) return;
  pair.silent = true;
  const forgotten = setTimeout(() => pair.server.destroy(), KEEPALIVE_MS);
  forgotten.unref();
  pair.server.once("close", () => clearTimeout(forgotten));
}

/** `to` is a port of loopback, or the path of a socket. */
export async function startRelay(to: number | string): Promise<Relay> {
  const pairs = new Set<Pair>();
  const held = new Map<Direction, PromiseWithResolvers<void>>();
  let silent = false;
  let stalled = false;
  let withheld = "";
  let trips = 0;
  /** The client has said something that nobody answered yet. */
  let asked = false;
  const server = createServer((client) => {
    const upstream = typeof to === "string" ? connect(to) : connect(to, "127.0.0.1");
    const pair: Pair = { client, server: upstream, silent: false };
    pairs.add(pair);
    if (silent) fallSilent(pair);
    if (stalled) client.pause();
    const end = (): void => {
      // A silent pair hides that the other side has gone, too.
      if (pair.silent) return;
      pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    const forward = (direction: Direction, from: Socket, into: Socket, onPiece: (piece: Buffer) => void): void => {
      let turn = Promise.resolve();
      let waiting = 0;
      const inTurn = (wait_ms: number, act: () => void): void => {
        waiting++;
        const due = wait_ms > 0 ? delay(wait_ms) : undefined;
        turn = turn.then(async () => {
          await due;
          await held.get(direction)?.promise;
          waiting--;
          act();
        });
      };
      from.setNoDelay(true).on("error", () => {});
      from.on("data", (piece: Buffer) => {
        if (pair.silent) return;
        onPiece(piece);
        if (withheld && direction === "out" && piece.includes(withheld) && piece.subarray(-SYNC.length).equals(SYNC)) {
          into.write(piece.subarray(0, -SYNC.length));
          pair.silent = true;
          return;
        }
        if (relay.delay_ms === 0 && waiting === 0 && !held.has(direction)) into.write(piece);
        else inTurn(relay.delay_ms, () => pair.silent || into.destroyed || into.write(piece));
      });
      from.on("close", () => inTurn(0, end));
    };
    forward("out", client, upstream, (piece) => {
      relay.onSent(piece);
      if (!asked) trips++;
      asked = true;
    });
    forward("in", upstream, client, () => {
      asked = false;
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const relay: Relay = {
    port: (server.address() as AddressInfo).port,
    delay_ms: 0,
    onSent: () => {},
    silence() {
      silent = true;
      for (const pair of pairs) fallSilent(pair);
    },
    hold(...directions) {
      for (const direction of directions) if (!held.has(direction)) held.set(direction, Promise.withResolvers());
    },
    stall() {
      stalled = true;
      for (const { client } of pairs) client.pause();
    },
    holdSync(text) {
      withheld = text;
    },
    restore() {
      silent = false;
      if (stalled) for (const { client } of pairs) client.resume();
      stalled = false;
      withheld = "";
      for (const { resolve } of held.values()) resolve();
      held.clear();
    },
    connections: () => [...pairs].filter((pair) => !pair.silent).length,
    trips() {
      const counted = trips;
      trips = 0;
      return counted;
    },
    async close() {
      for (const { client, server: upstream } of pairs) {
        client.destroy();
        upstream.destroy();
      }
      server.close();
      await once(server, "close");
    },
  };
  return relay;
}
