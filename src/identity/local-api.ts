/**
 * The API inside each machine: a unix socket in a folder of its own, which the driver binds to `/.svc`. One
 * server answers at all of them; which socket a connection came through says which machine it is.
 *
 *   <data dir>/run/api/<machine id>/api          the socket
 *   <data dir>/run/api/<machine id>/oidc_token   for AWS SDKs, kept fresh (aws.ts)
 */
import { chmodSync, closeSync, mkdirSync, openSync, readdirSync, renameSync, rmSync } from "node:fs";
import { createServer as createListener, type Server as Listener, type Socket } from "node:net";
import { join } from "node:path";
import type { Log } from "#core/log.ts";
import type { Server } from "#http/server.ts";
import type { LocalApi } from "#machines/runtime/local-api.ts";
import { IDENTITY_LIMITS as LIMITS } from "./limits.ts";
import type { MachineSocketAuthenticator } from "./machine-authenticator.ts";

interface LocalParts {
  /** `<data dir>/run/api`. */
  dir: string;
  machine_authenticator: MachineSocketAuthenticator;
  log: Log;
  /** Adds further files to a machine's directory. */
  installFiles(machine_id: string, folder: string): Promise<void>;
  removeFiles(machine_id: string): void;
  /** Whether the machine still exists. */
  exists(machine_id: string): Promise<boolean>;
}

interface MachineSocketListener {
  listener: Listener;
  connections: Set<Socket>;
}

export class MachineLocalApi implements LocalApi {
  readonly #parts: LocalParts;
  readonly #listeners = new Map<string, Promise<MachineSocketListener>>();
  /** The server, available once the platform has started. */
  readonly #server = Promise.withResolvers<Server>();
  #serving: Server | undefined;

  constructor(parts: LocalParts) {
    this.#parts = parts;
  }

  /** Opens the sockets of existing machines, and removes those of destroyed ones. */
  async start(server: Server): Promise<void> {
    const { dir, exists, log } = this.#parts;
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    await server.ready();
    this.#serving = server;
    this.#server.resolve(server);
    for (const id of readdirSync(dir)) {
      try {
        if (await exists(id)) await this.open(id);
        else await this.remove(id);
      } catch (error) {
        // A failure of one directory must not affect the others.
        log.error({ error, machine: id }, "a machine's own API could not be opened");
      }
    }
  }

  async open(machine_id: string): Promise<string> {
    const folder = this.#folder(machine_id);
    const listener = this.#listeners.get(machine_id) ?? this.#listen(machine_id, folder);
    this.#listeners.set(machine_id, listener);
    try {
      await listener;
    } catch (thrown) {
      this.#listeners.delete(machine_id);
      throw thrown;
    }
    await this.#parts.installFiles(machine_id, folder);
    return folder;
  }

  async quiet(machine_id: string): Promise<void> {
    const listener = await this.#listeners.get(machine_id);
    for (const connection of listener?.connections ?? []) connection.destroy();
  }

  async remove(machine_id: string): Promise<void> {
    await this.#shut(machine_id);
    this.#parts.removeFiles(machine_id);
    rmSync(this.#folder(machine_id), { recursive: true, force: true });
  }

  /** The directories stay: machines keep running and find their sockets again later. */
  async close(): Promise<void> {
    await Promise.all([...this.#listeners.keys()].map((id) => this.#shut(id)));
    await this.#serving?.close();
  }

  #folder(machine_id: string): string {
    if (!/^[0-9a-f]{1,32}$/.test(machine_id)) throw new Error(`${machine_id} is not a machine's id`);
    return join(this.#parts.dir, machine_id);
  }

  async #listen(machine_id: string, folder: string): Promise<MachineSocketListener> {
    const { machine_authenticator, log } = this.#parts;
    const server = await this.#server.promise;
    mkdirSync(folder, { recursive: true, mode: 0o755 });
    // Regardless of umask: every user inside must reach the socket; outside, the data dir is private.
    chmodSync(folder, 0o755);
    const connections = new Set<Socket>();
    const listener = createListener((connection) => {
      connections.add(connection);
      connection.once("close", () => connections.delete(connection));
      machine_authenticator.mark(connection, machine_id);
      server.accept(connection);
    });
    listener.maxConnections = LIMITS.socket_connections;
    listener.on("error", (error) => log.error({ error, machine: machine_id }, "a machine's own API failed"));
    // Created under a temporary name and renamed, so that there is always a socket.
    const fresh = join(folder, "api.new");
    rmSync(fresh, { force: true });
    await listen(listener, folder, fresh);
    chmodSync(fresh, 0o666);
    renameSync(fresh, join(folder, "api"));
    // An open socket must not keep a stopping platform alive.
    listener.unref();
    return { listener, connections };
  }

  async #shut(machine_id: string): Promise<void> {
    const listener = await this.#listeners.get(machine_id)?.catch(() => undefined);
    this.#listeners.delete(machine_id);
    if (!listener) return;
    listener.listener.close();
    for (const connection of listener.connections) connection.destroy();
  }
}

/** A path too long for a socket is reached through the directory's descriptor. */
async function listen(listener: Listener, folder: string, path: string): Promise<void> {
  const long = Buffer.byteLength(path) > LIMITS.socket_path_bytes;
  const fd = long ? openSync(folder, "r") : undefined;
  try {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    listener.once("error", reject);
    listener.listen(fd === undefined ? path : `/proc/self/fd/${fd}/api.new`, () => {
      listener.off("error", reject);
      resolve();
    });
    await promise;
  } finally {
    if (fd !== undefined) closeSync(fd);
  }
}
