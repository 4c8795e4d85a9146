import { createSocket, type Socket } from "node:dgram";
import { isIPv6 } from "node:net";
import { PROXY_LIMITS } from "../limits.ts";
import { type DoorPlace, words } from "./door.ts";
import type { Plane } from "./plane.ts";
import type { Route, Waiter } from "./route.ts";
import type { TargetState } from "./target.ts";

interface Session {
  socket: Socket;
  target: TargetState;
  used_at: number;
}

/**
 * One open UDP port. Each client, told by its address, gets a socket of its own towards one machine, so that
 * answers find their way back; it is forgotten when nothing moves for a while.
 */
export class DatagramDoor {
  readonly protocol = "udp";
  readonly address: string;
  readonly port: number;
  readonly opened: Promise<void>;
  problem: string | undefined;
  routes: readonly Route[] = [];
  readonly #plane: Plane;
  readonly #socket: Socket;
  readonly #sessions = new Map<string, Session>();
  readonly #waiting = new Map<string, Buffer[]>();
  #tried_at: number;
  #stopped = false;

  constructor(place: DoorPlace, plane: Plane) {
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
        this.problem = words(error, this);
        resolve();
      });
    });
    this.#socket.on("message", (data, from) => this.#take(data, from.address, from.port));
    this.#bind();
    plane.watch(this);
  }

  sweep(now: number): void {
    for (const [key, session] of this.#sessions) {
      if (now - session.used_at > PROXY_LIMITS.datagram_idle_ms) this.#forget(key, session);
    }
  }

  drain(): void {}

  cut(): void {}

  /** A port that was taken may be free by now. */
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
    for (const [key, session] of this.#sessions) this.#forget(key, session);
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
      session.socket.send(data);
      return;
    }
    const waiting = this.#waiting.get(key);
    // A few may wait for the machine; datagrams may be lost, so the rest are.
    if (waiting) return void (waiting.length < 16 && waiting.push(data));
    if (this.#sessions.size + this.#waiting.size >= PROXY_LIMITS.datagram_clients) return;
    this.#waiting.set(key, [data]);
    this.#ask(route, key, address, port);
  }

  #ask(route: Route, key: string, address: string, port: number): void {
    const waiter: Waiter = {
      kind: "seat",
      fresh: true,
      preface: undefined,
      since: 0,
      refused_at: undefined,
      gone: false,
      got: (target) => this.#open(route, target as TargetState, { key, address, port }),
      refused: () => void this.#waiting.delete(key),
    };
    route.obtain(waiter);
  }

  #open(route: Route, target: TargetState, to: { key: string; address: string; port: number }): void {
    const { host, port } = target.table;
    const socket = createSocket(isIPv6(host) ? "udp6" : "udp4");
    const session: Session = { socket, target, used_at: this.#plane.now() };
    this.#sessions.set(to.key, session);
    socket.on("error", () => this.#forget(to.key, session));
    socket.on("message", (data) => {
      session.used_at = this.#plane.now();
      route.counters.moved(0, data.length);
      this.#socket.send(data, to.port, to.address);
    });
    socket.connect(port, host, () => {
      for (const data of this.#waiting.get(to.key) ?? []) socket.send(data);
      this.#waiting.delete(to.key);
    });
  }

  #forget(key: string, session: Session): void {
    if (this.#sessions.get(key) !== session) return;
    this.#sessions.delete(key);
    this.#waiting.delete(key);
    session.socket.close();
    session.target.leave();
  }
}
