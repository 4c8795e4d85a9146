/** A TCP relay in front of a server, which a test slows down, silences or counts on. */
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";

export interface Relay {
  port: number;
  /** Nothing is forwarded and nothing closed, as behind a firewall that forgot the connection; also new ones hang. */
  silence(): void;
  /** Forwards again what comes from now on; what was swallowed stays lost, so old connections stay silent. */
  restore(): void;
  /** Connections that were silenced stay so; new ones are forwarded. */
  connections(): number;
  /** Every piece is held back for so long, in each direction. */
  delay_ms: number;
  /** Replies that were waited for since the last call: what a caller sends at once is one trip. */
  trips(): number;
  close(): Promise<void>;
}

interface Pair {
  client: Socket;
  server: Socket;
  silent: boolean;
}

/** `to` is a port of loopback, or the path of a socket. */
export async function startRelay(to: number | string): Promise<Relay> {
  const pairs = new Set<Pair>();
  let silent = false;
  let trips = 0;
  /** The client has said something that nobody answered yet. */
  let asked = false;
  const server = createServer((client) => {
    const upstream = typeof to === "string" ? connect(to) : connect(to, "127.0.0.1");
    const pair: Pair = { client, server: upstream, silent };
    pairs.add(pair);
    const end = (): void => {
      // A silent pair hides that the other side has gone, too.
      if (pair.silent) return;
      pairs.delete(pair);
      client.destroy();
      upstream.destroy();
    };
    for (const socket of [client, upstream]) socket.setNoDelay(true).on("error", end).on("close", end);
    const forward = (from: Socket, into: Socket, onPiece: () => void): void => {
      let turn = Promise.resolve();
      from.on("data", (piece: Buffer) => {
        if (pair.silent) return;
        onPiece();
        if (relay.delay_ms === 0) return void into.write(piece);
        const due = delay(relay.delay_ms);
        turn = turn.then(async () => {
          await due;
          if (!pair.silent) into.write(piece);
        });
      });
    };
    forward(client, upstream, () => {
      if (!asked) trips++;
      asked = true;
    });
    forward(upstream, client, () => {
      asked = false;
    });
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const relay: Relay = {
    port: (server.address() as AddressInfo).port,
    delay_ms: 0,
    silence() {
      silent = true;
      for (const pair of pairs) pair.silent = true;
    },
    restore() {
      silent = false;
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
