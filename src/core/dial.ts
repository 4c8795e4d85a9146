/** TCP connections to a port that may be open on one of two addresses, as with programs that listen on IPv4 alone. */
import { connect, type OnReadOpts, type Socket } from "node:net";
import { LIMITS } from "./limits.ts";

/** The address of a port: `host`, or the machine's IPv4 address when the program listens on IPv4 only. */
export interface Address {
  host: string;
  ipv4?: string;
  port: number;
}

/** One port and its addresses. Remembers which one accepted the last connection, to try it first. */
export class Endpoint {
  readonly port: number;
  #hosts: readonly string[];

  constructor({ host, ipv4, port }: Address) {
    this.port = port;
    this.#hosts = ipv4 === undefined ? [host] : [host, ipv4];
  }

  /** The address to try first. */
  get host(): string {
    return this.#hosts[0] ?? "";
  }

  /** All addresses in the order to try them. */
  get hosts(): readonly string[] {
    return this.#hosts;
  }

  /** Moves an address that accepted a connection to the front. */
  prefer(host: string): void {
    if (this.host !== host) this.#hosts = [host, ...this.#hosts.filter((one) => one !== host)];
  }
}

export interface DialOptions {
  /** For all addresses together; without it only the kernel's timeout applies. */
  timeout_ms?: number;
  allowHalfOpen?: boolean;
  noDelay?: boolean;
  onread?: OnReadOpts;
}

export type Dialed = (socket: Socket | undefined, problem?: Error) => void;

/**
 * Connects to the first address that accepts and passes the socket or the error to `done`. After a refusal the other
 * address is tried at once, after silence following `dial_stagger_ms` (RFC 8305). The returned function cancels it;
 * `done` is not called then.
 */
export function dial(endpoint: Endpoint, { timeout_ms, ...options }: DialOptions, done: Dialed): () => void {
  const { hosts, port } = endpoint;
  const tried: Socket[] = [];
  let failed = 0;
  let first: Error | undefined;
  let timer: NodeJS.Timeout | undefined;

  const stop = (winner?: Socket): void => {
    clearTimeout(timer);
    for (const socket of tried) if (socket !== winner) socket.destroy();
  };
  const fail = (problem: Error): void => {
    first ??= problem;
    failed++;
    if (tried.length < hosts.length) next();
    else if (failed === hosts.length) {
      stop();
      done(undefined, first);
    }
  };
  const next = (): void => {
    const host = hosts[tried.length] as string;
    const socket = connect({ host, port, ...options });
    tried.push(socket);
    socket.once("error", fail);
    socket.once("connect", () => {
      socket.off("error", fail);
      stop(socket);
      endpoint.prefer(host);
      done(socket);
    });
  };
  const expire = (): void => {
    stop();
    done(undefined, new Error("the machine does not answer"));
  };
  const arm = (left_ms: number | undefined): void => {
    if (left_ms !== undefined) timer = setTimeout(expire, left_ms);
  };

  next();
  const stagger = LIMITS.dial_stagger_ms;
  if (hosts.length === 1 || (timeout_ms !== undefined && timeout_ms <= stagger)) arm(timeout_ms);
  else {
    timer = setTimeout(() => {
      if (tried.length < hosts.length) next();
      arm(timeout_ms === undefined ? undefined : timeout_ms - stagger);
    }, stagger);
  }
  return () => stop();
}

/** The same as a promise; rejects with the problem, or with the signal's reason. */
export async function dialed(endpoint: Endpoint, options: DialOptions & { signal?: AbortSignal }): Promise<Socket> {
  const { signal, ...rest } = options;
  signal?.throwIfAborted();
  return await new Promise((resolve, reject) => {
    const aborted = (): void => {
      giveUp();
      reject(signal?.reason as Error);
    };
    const giveUp = dial(endpoint, rest, (socket, problem) => {
      signal?.removeEventListener("abort", aborted);
      if (socket) resolve(socket);
      else reject(problem ?? new Error("no connection"));
    });
    signal?.addEventListener("abort", aborted, { once: true });
  });
}
