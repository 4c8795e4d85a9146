/** DNS over TCP (RFC 7766): each message behind its length, any number of them on one connection. */
import { once } from "node:events";
import { connect, type Socket } from "node:net";

const LENGTH_BYTES = 2;

/** Messages of a connection until it ends. */
async function* messages(socket: Socket): AsyncGenerator<Buffer> {
  let unread: Buffer = Buffer.alloc(0);
  for await (const chunk of socket) {
    unread = Buffer.concat([unread, chunk as Buffer]);
    while (unread.length >= LENGTH_BYTES) {
      const end = LENGTH_BYTES + unread.readUInt16BE(0);
      if (unread.length < end) break;
      yield unread.subarray(LENGTH_BYTES, end);
      unread = unread.subarray(end);
    }
  }
}

function framed(message: Buffer): Buffer {
  const length = Buffer.alloc(LENGTH_BYTES);
  length.writeUInt16BE(message.length);
  return Buffer.concat([length, message]);
}

/**
 * Answers queries in order: resolvers send A and AAAA together on one connection. A query without an answer closes it.
 */
export async function serveMessages(
  socket: Socket,
  { idle_ms, answer }: { idle_ms: number; answer(message: Buffer): Promise<Buffer | undefined> },
): Promise<void> {
  socket.setTimeout(idle_ms, () => socket.destroy());
  socket.on("error", () => socket.destroy());
  try {
    for await (const message of messages(socket)) {
      const reply = await answer(message);
      if (!reply) break;
      if (!socket.write(framed(reply))) await once(socket, "drain");
    }
    socket.end();
  } catch {
    // The connection broke, so no response can be sent.
    socket.destroy();
  }
}

/** A server's response to one message, within the timeout. */
export async function queryOverTcp(
  { host, port }: { host: string; port: number },
  message: Buffer,
  timeout_ms: number,
): Promise<Buffer | undefined> {
  const socket = connect({ host, port });
  const late = setTimeout(() => socket.destroy(), timeout_ms);
  socket.on("error", () => socket.destroy());
  socket.write(framed(message));
  try {
    for await (const answer of messages(socket)) return answer;
    return undefined;
  } catch {
    return undefined;
  } finally {
    clearTimeout(late);
    socket.destroy();
  }
}
