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
  /** Who came first is first. */
  routes: Route[];
}

export const listenerKey = ({ protocol, address, port }: Omit<ListenAddress, "routes">): string =>
  `${protocol} ${address} ${port}`;

type Kind = "http" | "tls" | "tcp";
const kindOf = ({ table: { options } }: Route): Kind => (options.tls ? "tls" : options.http ? "http" : "tcp");

/**
 * One open TCP port. Apps that share it are told apart by host name, or by the name in the TLS hello; so they
 * must all speak the kind of protocol that the first of them does. An app that alone has the port answers to any name.
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
  /** Answers names that are nobody's. */
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
        this.problem = words(error, this);
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
    // The first one keeps a name that two claim.
    for (const route of [...this.#routes].reverse()) {
      for (const name of route.app.hostnames) this.#byName.set(name, route);
    }
  }

  /** The app of a host name, or the one that answers names that are nobody's. */
  find(name: string): Route | undefined {
    return this.#named(name) ?? this.#default;
  }

  #named(name: string): Route | undefined {
    const dot = name.indexOf(".");
    const wildcard = dot > 0 ? this.#byName.get(`*${name.slice(dot)}`) : undefined;
    return this.#byName.get(name) ?? (wildcard?.app.reserved.includes(name) ? undefined : wildcard);
  }

  /** A port that was taken may be free by now. */
  reopen(now: number): void {
    if (this.#stopped || now - this.#tried_at < PROXY_LIMITS.reopen_ms) return;
    this.#tried_at = now;
    this.#listen();
  }

  /** Listens no more; connections stay. */
  stop(): Promise<void> {
    this.#stopped = true;
    // Those that are in line already are taken first.
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

  /** Reads the TLS hello to know for whom the connection is; nothing of it is used up. */
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
        // Nobody's name; it is counted where the port is, and not by what the client made up.
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
    // A client that offers nothing we know is served as if it had offered nothing.
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

/** A fatal TLS alert (RFC 6066, 3): no app has the server name that the client asked for. */
const UNRECOGNIZED_NAME = Buffer.from([21, 3, 1, 0, 2, 2, 112]);

/**
 * The app that answers names that are nobody's: the one that alone has the port, or else the oldest of those on a TLS
 * port that say `default_self_signed`.
 */
function defaultRoute(routes: readonly Route[]): Route | undefined {
  const [first] = routes;
  if (routes.every(({ app }) => app.app_id === first?.app.app_id)) return first;
  return routes.find(({ table: { options } }) => options.tls && options.self_signed);
}

/** Cuts a connection whose beginning takes too long. */
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
export function words(error: NodeJS.ErrnoException, { address, port }: { address: string; port: number }): string {
  const at = `${address} port ${port}`;
  if (error.code === "EADDRINUSE") return `${at} is used by another program`;
  if (error.code === "EACCES") return `${at} needs more rights; ports below 1024 usually do`;
  if (error.code === "EADDRNOTAVAIL") return `${at} cannot be opened: this box does not have the address`;
  return `${at} cannot be opened: ${error.message}`;
}
