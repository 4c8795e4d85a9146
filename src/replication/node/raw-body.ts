/**
 * Reads the endless body of a response directly from the socket. A new buffer for every chunk would cost the garbage
 * collector more than everything done with its content, so one buffer is reused. The head of the response goes through
 * Node's parser as usual.
 */
import type { ClientRequestArgs, IncomingMessage } from "node:http";
import { connect, type Socket } from "node:net";

const READ_BYTES = 64 * 1024;

export class RawBody {
  #take: ((bytes: Buffer) => void) | undefined;

  /** The connection to make the request on. */
  readonly connect = ({ host, port }: ClientRequestArgs): Socket => {
    const memory = Buffer.allocUnsafeSlow(READ_BYTES);
    const callback = (count: number): boolean => {
      const bytes = memory.subarray(0, count);
      // What the parser is given, it keeps.
      if (this.#take) this.#take(bytes);
      else socket.emit("data", Buffer.from(bytes));
      return true;
    };
    const socket = connect({ host: host ?? "localhost", port: Number(port), onread: { buffer: memory, callback } });
    return socket;
  };

  /** From here on bytes go to `take`, valid until it returns; first those that arrived with the head. */
  read(response: IncomingMessage, take: (bytes: Buffer) => void): void {
    for (let bytes = response.read() as Buffer | null; bytes; bytes = response.read() as Buffer | null) take(bytes);
    this.#take = take;
    // Nothing comes this way any more but the end.
    response.resume();
  }
}
