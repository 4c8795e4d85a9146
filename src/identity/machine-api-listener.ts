/**
 * The gateway on the private networks: `http://_api.internal:4280/v1/gateway/…`, for programs that cannot speak to a
 * unix socket. A caller is the machine whose address it has. What proves who a machine is stays at the socket:
 * a program that can be talked into fetching an address must not hand out tokens.
 */
import { createServer as createListener, type Server as Listener } from "node:net";
import type { Server } from "#http/server.ts";
import { IDENTITY_LIMITS as LIMITS } from "./limits.ts";
import { expanded } from "./machine-authenticator.ts";

export class MachineApiListener {
  readonly what = "the gateway";
  readonly #listeners = new Map<string, Listener>();
  /** The server, available once the platform has started. */
  readonly #server = Promise.withResolvers<Server>();
  #serving: Server | undefined;

  async start(server: Server): Promise<void> {
    await server.ready();
    this.#serving = server;
    this.#server.resolve(server);
  }

  async listen(address: string): Promise<void> {
    const server = await this.#server.promise;
    const listener = createListener((connection) => {
      // A machine is served only at the gateway of its own network.
      if (networkOf(connection.remoteAddress) === networkOf(address)) server.accept(connection);
      else connection.destroy();
    });
    listener.maxConnections = LIMITS.network_connections;
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    // Stays: a later accept failure (out of descriptors) must not end the platform.
    listener.on("error", reject);
    listener.listen(LIMITS.network_port, address, resolve);
    await promise;
    // An open listener must not keep a stopping platform alive.
    listener.unref();
    this.#listeners.set(address, listener);
  }

  async close(): Promise<void> {
    for (const listener of this.#listeners.values()) listener.close();
    this.#listeners.clear();
    await this.#serving?.close();
  }
}

/** The private network of an address: its first 48 bits. */
const networkOf = (address = "::"): string => expanded(address).slice(0, 12);
