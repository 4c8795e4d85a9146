/** A file over the channel between the platform's processes: piece by piece, and its length at the end. */
import { createReadStream } from "node:fs";
import { open, rm } from "node:fs/promises";
import { fail } from "#core/errors.ts";
import type { Channel, StreamHandlers } from "#hosts/channel.ts";

/** Writes what the other process sends to `file`. Returns false, without a file, when there is nothing. */
export async function receiveFile(
  channel: Channel,
  { address, name, body }: { address: string; name: string; body: unknown },
  file: string,
  signal: AbortSignal,
): Promise<boolean> {
  const line = await channel.stream(address, name, body, signal);
  const handle = await open(file, "wx", 0o600);
  let bytes = 0;
  let announced: number | undefined;
  try {
    for await (const message of line.messages()) {
      if (typeof message === "string") announced = (JSON.parse(message) as { bytes: number }).bytes;
      else {
        await handle.writeFile(message);
        bytes += message.length;
      }
    }
  } finally {
    await handle.close();
    if (announced === undefined || announced !== bytes) await rm(file, { force: true });
  }
  if (announced === bytes) return bytes > 0;
  fail("host_unreachable", `the connection to ${address} broke off after ${bytes} bytes`);
}

/** Sends the file that `write` creates, if any, and removes it. */
export const fileSender =
  (
    write: (body: unknown, file: string, signal: AbortSignal) => Promise<boolean>,
    temporary: () => string,
  ): StreamHandlers[string] =>
  async (body, signal) => {
    const file = temporary();
    const found = await write(body, file, signal);
    return async (line) => {
      try {
        let bytes = 0;
        for await (const piece of found ? createReadStream(file) : []) {
          if (line.signal.aborted) return;
          await line.send(piece as Buffer);
          bytes += (piece as Buffer).length;
        }
        await line.send(JSON.stringify({ bytes }));
        line.end(1000, "that is all");
      } finally {
        await rm(file, { force: true });
      }
    };
  };
