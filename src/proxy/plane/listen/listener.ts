import { createServer, type Server, type Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { PROXY_LIMITS } from "../../limits.ts";
import type { Route } from "../balance/route.ts";
import { dispatcher } from "../dispatch.ts";
import type { Peer } from "../header-rewrite.ts";
import { Http1Client } from "../http1/client.ts";
import { serveHttp2 } from "../http2/server.ts";
import type { PlaneServices, Watched } from "../types.ts";
import { type Hello, readHello } from "./client-hello.ts";
import { beginPostgresTls } from "./postgres-tls.ts";
import { passRaw } from "./raw.ts";

export interface ListenAddress {
  protocol: "tcp" | "udp";
  address: string;
  port: number;
  /** Ordered by age of the app. */
  routes: Route[];
}

export const listenerKey = ({ protocol, address, port }: Omit<ListenAddress, "routes">): string =>
  `${protocol} ${address} ${port}`;

type Kind = "http" | "tls" | "tcp";
const kindOf = ({ table: { options } }: Route): Kind => (options.tls ? "tls" : options.http ? "http" : "tcp");

/**
 * One open TCP port. Apps that share it are distinguished by Host or SNI, so they must all use the same kind of
 * protocol as the oldest one. An app that has the port alone accepts any name.
 */
export class Listener {
  readonly protocol = "tcp";
  readonly address: string;
  readonly port: number;
  readonly opened: Promise<void>;
  problem: string | undefined;
  readonly #plane: PlaneServices;
  readonly #server: Server;
  #routes: readonly Route[] = [];
  #byName = new Map<string, Route>();
  /** Serves unknown names. */
  #default: Route | undefined;
  #tried_at: number;
  #stopped = false;

  constructor(place: ListenAddress, plane: PlaneServices) {
    this.address = place.address;
    this.port = place.port;
    this.#plane = plane;
    this.#tried_at = plane.now();
    this.#server = createServer({ allowHalfOpen: true, noDelay: true }, (socket) => this.#enter(socket));
    this.opened = new Promise((resolve) => {
      this.#server.on("listening", () => {
        this.problem = undefined;
        resolve();
      });
      this.#server.on("error", (error: NodeJS.ErrnoException) => {
        this.problem = listenProblem(error, this);
        resolve();
      });
    });
    this.#listen();
  }

  set routes(routes: readonly Route[]) {
    const [first] = routes;
    this.#routes = routes.filter((route) => first && kindOf(route) === kindOf(first));
    this.#byName = new Map();
    this.#default = defaultRoute(this.#routes);
    // The oldest app keeps a name that two claim.
    for (const route of [...this.#routes].reverse()) {
      for (const name of route.app.hostnames) this.#byName.set(name, route);
    }
  }

  /** The app of a host name, or the default app. */
  find(name: string): Route | undefined {
    return this.#named(name) ?? this.#default;
  }

  #named(name: string): Route | undefined {
    const dot = name.indexOf(".");
    const wildcard = dot > 0 ? this.#byName.get(`*${name.slice(dot)}`) : undefined;
    return this.#byName.get(name) ?? (wildcard?.app.reserved.includes(name) ? undefined : wildcard);
  }

  /** Retries a port that was in use. */
  reopen(now: number): void {
    if (this.#stopped || now - this.#tried_at < PROXY_LIMITS.reopen_ms) return;
    this.#tried_at = now;
    this.#listen();
  }

  /** Stops listening; open connections continue. */
  stop(): Promise<void> {
    this.#stopped = true;
    // Connections in the accept queue are accepted first.
    return new Promise((resolve) =>
      setImmediate(() => {
        this.#server.close();
        resolve();
      }),
    );
  }

  close(): void {
    this.#stopped = true;
    this.#server.close();
  }

  #listen(): void {
    this.#server.listen({ host: this.address, port: this.port, reusePort: true, backlog: 4096 });
  }

  #enter(socket: Socket): void {
    const [first] = this.#routes;
    if (!first || this.#plane.crowded) return void socket.destroy();
    socket.on("error", () => socket.destroy());
    const peer: Peer = {
      address: (socket.remoteAddress ?? "").replace(/^::ffff:/, ""),
      port: socket.remotePort ?? 0,
      local_address: (socket.localAddress ?? "").replace(/^::ffff:/, ""),
      local_port: this.port,
      secure: false,
    };
    const kind = kindOf(first);
    if (kind === "http") this.#http(socket, peer, undefined);
    else if (kind === "tcp" && this.#routes.length === 1) passRaw(socket, first, peer, this.#plane, EMPTY);
    else if (first.table.options.pg_tls) beginPostgresTls(socket, this.#plane, () => this.#sniff(socket, peer, kind));
    else this.#sniff(socket, peer, kind);
  }

  #http(socket: Socket, peer: Peer, sni: Route | undefined): void {
    const likely = sni ?? (this.#routes.length === 1 ? this.#routes[0] : undefined);
    new Http1Client(socket, {
      plane: this.#plane,
      peer,
      listener: this,
      dispatch: dispatcher(this, this.#plane, peer, sni),
      ...(likely && { likely }),
    });
  }

  /** Reads the TLS ClientHello to find the app, without consuming it. */
  #sniff(socket: Socket, peer: Peer, kind: Kind): void {
    const began = this.#plane.now();
    let bytes: Buffer = EMPTY;
    const watched = handshakeTimeout(this.#plane, socket, began);
    const read = (chunk: Buffer): void => {
      bytes = bytes.length === 0 ? chunk : Buffer.concat([bytes, chunk]);
      const hello = readHello(bytes);
      if (hello === "more") return;
      socket.off("data", read);
      socket.pause();
      this.#plane.unwatch(watched);
      const route = hello ? this.find(hello.servername) : undefined;
      if (!hello || !route) {
        // An unknown name is counted at the port's first app, without the name, which the client made up.
        this.#routes[0]?.counters.handshakeFailed("");
        return void (hello ? socket.end(UNRECOGNIZED_NAME, () => socket.destroy()) : socket.destroy());
      }
      if (kind === "tcp") {
        passRaw(socket, route, peer, this.#plane, bytes);
        return;
      }
      socket.unshift(bytes);
      this.#secure(socket, peer, { hello, route, began });
    };
    socket.on("data", read);
    socket.on("end", () => socket.destroy());
  }

  #secure(socket: Socket, peer: Peer, { hello, route, began }: { hello: Hello; route: Route; began: number }): void {
    const { options } = route.table;
    const offered = options.alpn.length > 0 ? options.alpn : options.http ? ["h2", "http/1.1"] : [];
    const common = offered.filter((name) => hello.alpn.includes(name));
    const watched = handshakeTimeout(this.#plane, socket, began);
    let done = false;
    socket.once("close", () => {
      if (!done) route.counters.handshakeFailed(hello.servername);
    });
    // A client that offers no known ALPN protocol is served as if it offered none.
    const self_signed = this.#named(hello.servername)?.app.app_id !== route.app.app_id;
    this.#plane.keys.secure(socket, { alpn: common, options, self_signed }, (secure) => {
      done = true;
      this.#plane.unwatch(watched);
      secure.on("error", () => secure.destroy());
      const version = (secure.getProtocol() ?? "").replace(/^TLSv/, "");
      route.counters.handshakeDone(version, (this.#plane.now() - began) / 1000);
      this.#serveSecure(secure, { ...peer, secure: true }, route);
    });
  }

  #serveSecure(secure: TLSSocket, peer: Peer, route: Route): void {
    const plane = this.#plane;
    if (!route.table.options.http) passRaw(secure, route, peer, plane, EMPTY);
    else if (secure.alpnProtocol !== "h2") this.#http(secure, peer, route);
    else serveHttp2(secure, { plane, peer, listener: this, dispatch: dispatcher(this, plane, peer, route) });
  }
}

const EMPTY = Buffer.alloc(0);

/** Fatal TLS alert unrecognized_name (RFC 6066, 3). */
const UNRECOGNIZED_NAME = Buffer.from([21, 3, 1, 0, 2, 2, 112]);

/** The app for unknown names: the only one on the port, or else the oldest on a TLS port with `default_self_signed`. */
function defaultRoute(routes: readonly Route[]): Route | undefined {
  const [first] = routes;
  if (routes.every(({ app }) => app.app_id === first?.app.app_id)) return first;
  return routes.find(({ table: { options } }) => options.tls && options.self_signed);
}

/** Closes a connection whose handshake times out. */
function handshakeTimeout(plane: PlaneServices, socket: Socket, began: number): Watched {
  const watched = {
    sweep(now: number): void {
      if (now - began > PROXY_LIMITS.handshake_ms) socket.destroy();
    },
    drain(): void {},
    cut: (): void => void socket.destroy(),
  };
  plane.watch(watched);
  socket.once("close", () => plane.unwatch(watched));
  return watched;
}

/** Why a port cannot be opened, and what to do. */
export function listenProblem(
  error: NodeJS.ErrnoException,
  { address, port }: { address: string; port: number },
): string {
  const at = `${address} port ${port}`;
  if (error.code === "EADDRINUSE") return `${at} is used by another program`;
  if (error.code === "EACCES") return `${at} needs more rights; ports below 1024 usually do`;
  if (error.code === "EADDRNOTAVAIL") return `${at} cannot be opened: this box does not have the address`;
  return `${at} cannot be opened: ${error.message}`;
}
