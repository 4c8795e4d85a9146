import { once } from "node:events";
import { type AddressInfo, createServer, type Server as Listener, type Socket } from "node:net";
import type { Server } from "#http/server.ts";

/**
 * The address of the emulator, which stays the same while the platform behind it is replaced. Whoever comes in
 * between waits.
 */
export class EmulatorListener {
  readonly #listener: Listener;
  #behind: Server | undefined;
  #waiting: Socket[] = [];

  private constructor(listener: Listener) {
    this.#listener = listener;
    listener.on("connection", (connection) => {
      if (this.#behind) this.#behind.accept(connection);
      else this.#waiting.push(connection);
    });
  }

  static async open(host: string, port: number): Promise<EmulatorListener> {
    // As node:http opens its own: the other side may be done sending and still wait for the answer.
    const listener = createServer({ allowHalfOpen: true, noDelay: true });
    const listening = once(listener, "listening");
    listener.listen(port, host);
    await listening;
    return new EmulatorListener(listener);
  }

  get address(): { host: string; port: number } {
    const { address, port } = this.#listener.address() as AddressInfo;
    return { host: address, port };
  }

  async lead(server: Server): Promise<void> {
    await server.ready();
    this.#behind = server;
    for (const connection of this.#waiting.splice(0)) server.accept(connection);
  }

  /** From now on new connections wait. */
  shut(): void {
    this.#behind = undefined;
  }

  async close(): Promise<void> {
    this.shut();
    for (const connection of this.#waiting.splice(0)) connection.destroy();
    const closed = once(this.#listener, "close");
    this.#listener.close();
    await closed;
  }
}
