import { createSocket, type Socket } from "node:dgram";
import { isIPv6 } from "node:net";
import { PROXY_LIMITS } from "../../limits.ts";
import type { PendingRequest } from "../balance/pending-request.ts";
import type { Route } from "../balance/route.ts";
import type { TargetState } from "../balance/target.ts";
import type { PlaneServices } from "../types.ts";
import { type ListenAddress, listenProblem } from "./listener.ts";

interface Client {
  key: string;
  address: string;
  port: number;
}

/** The association of one client with a machine. */
interface Session extends Client {
  route: Route;
  target: TargetState;
  socket: Socket | undefined;
  /** The address in use, and those not tried yet. */
  host: string;
  untried: string[];
  /** Whether the socket can send, and the callback for the result. */
  open: boolean;
  sent: (error: Error | null) => void;
  since: number;
  used_at: number;
  /** Datagrams sent before the address was known to accept them; sent again to the next address. */
  buffered: Buffer[];
  buffered_bytes: number;
  settled: boolean;
}

/**
 * One open UDP port. Each client address gets a socket of its own to one machine, so that responses can be returned; it
 * is closed when idle.
 */
export class DatagramListener {
  readonly protocol = "udp";
  readonly address: string;
  readonly port: number;
  readonly opened: Promise<void>;
  problem: string | undefined;
  routes: readonly Route[] = [];
  readonly #plane: PlaneServices;
  readonly #socket: Socket;
  readonly #sessions = new Map<string, Session>();
  readonly #waiting = new Map<string, Buffer[]>();
  #tried_at: number;
  #stopped = false;

  constructor(place: ListenAddress, plane: PlaneServices) {
    this.address = place.address;
    this.port = place.port;
    this.#plane = plane;
    this.#tried_at = plane.now();
    this.#socket = createSocket({ type: isIPv6(place.address) ? "udp6" : "udp4", reusePort: true });
    this.opened = new Promise((resolve) => {
      this.#socket.on("listening", () => {
        this.problem = undefined;
        resolve();
      });
      this.#socket.on("error", (error) => {
        this.problem = listenProblem(error, this);
        resolve();
      });
    });
    this.#socket.on("message", (data, from) => this.#take(data, from.address, from.port));
    this.#bind();
    plane.watch(this);
  }

  sweep(now: number): void {
    for (const session of this.#sessions.values()) {
      if (session.open && !session.settled && now - session.since > PROXY_LIMITS.datagram_settle_ms) settle(session);
      if (now - session.used_at > PROXY_LIMITS.datagram_idle_ms) this.#forget(session);
    }
  }

  drain(): void {}

  cut(): void {}

  /** Retries a port that was in use. */
  reopen(now: number): void {
    if (this.#stopped || now - this.#tried_at < PROXY_LIMITS.reopen_ms) return;
    this.#tried_at = now;
    this.#bind();
  }

  async stop(): Promise<void> {
    this.close();
  }

  close(): void {
    this.#stopped = true;
    this.#plane.unwatch(this);
    for (const session of this.#sessions.values()) this.#forget(session);
    try {
      this.#socket.close();
    } catch {
      // It was never open.
    }
  }

  #bind(): void {
    this.#socket.bind(this.port, this.address);
  }

  #take(data: Buffer, address: string, port: number): void {
    const [route] = this.routes;
    if (!route) return;
    const key = `${address} ${port}`;
    const session = this.#sessions.get(key);
    route.counters.moved(data.length, 0);
    if (session) {
      session.used_at = this.#plane.now();
      this.#send(session, data);
      return;
    }
    const waiting = this.#waiting.get(key);
    // A few datagrams wait for the machine; the rest are dropped.
    if (waiting) return void (waiting.length < 16 && waiting.push(data));
    if (this.#sessions.size + this.#waiting.size >= PROXY_LIMITS.datagram_clients) return;
    this.#waiting.set(key, [data]);
    this.#obtain(route, { key, address, port });
  }

  #obtain(route: Route, client: Client): void {
    const pending: PendingRequest = {
      kind: "seat",
      fresh: true,
      preface: undefined,
      since: 0,
      refused_at: undefined,
      aborted: false,
      got: (target) => this.#open(route, target as TargetState, client),
      refused: () => void this.#waiting.delete(client.key),
    };
    route.obtain(pending);
  }

  #open(route: Route, target: TargetState, client: Client): void {
    const now = this.#plane.now();
    const session: Session = {
      ...client,
      route,
      target,
      socket: undefined,
      host: "",
      untried: [...target.endpoint.hosts],
      open: false,
      sent: () => {},
      since: now,
      used_at: now,
      buffered: [],
      buffered_bytes: 0,
      settled: false,
    };
    this.#sessions.set(client.key, session);
    for (const data of this.#waiting.get(client.key) ?? []) this.#send(session, data);
    this.#waiting.delete(client.key);
    this.#connect(session);
  }

  /** Connects to the machine's next address. A refusal is an error of the socket, or of the next send. */
  #connect(session: Session): void {
    const host = session.untried.shift() ?? "";
    const socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
    Object.assign(session, { socket, host, open: false, since: this.#plane.now() });
    const failed = (error: Error | null): void => void (error && this.#refused(session, socket));
    session.sent = failed;
    socket.on("error", failed);
    socket.on("message", (data) => {
      session.used_at = this.#plane.now();
      if (!session.settled) settle(session);
      session.route.counters.moved(0, data.length);
      this.#socket.send(data, session.port, session.address);
    });
    socket.connect(session.target.table.port, host, () => {
      if (session.socket !== socket) return;
      session.open = true;
      for (const data of session.buffered) socket.send(data, session.sent);
      if (session.untried.length === 0) settle(session);
    });
  }

  #send(session: Session, data: Buffer): void {
    if (!session.settled && session.buffered_bytes + data.length <= PROXY_LIMITS.datagram_kept_bytes) {
      session.buffered.push(data);
      session.buffered_bytes += data.length;
    }
    if (session.open) session.socket?.send(data, session.sent);
  }

  #refused(session: Session, socket: Socket): void {
    if (session.socket !== socket) return;
    if (session.settled || session.untried.length === 0) {
      this.#forget(session);
      return;
    }
    socket.close();
    this.#connect(session);
  }

  #forget(session: Session): void {
    if (this.#sessions.get(session.key) !== session) return;
    this.#sessions.delete(session.key);
    const { socket } = session;
    session.socket = undefined;
    socket?.close();
    session.target.release();
  }
}

/** This address accepts datagrams: none is sent again, and the next client starts with it. */
function settle(session: Session): void {
  session.settled = true;
  session.buffered = [];
  session.target.endpoint.prefer(session.host);
}
