/** Listening sockets of machines: explains why a port is unreachable. */
import type { Clock } from "#core/clock.ts";
import { type ListenSocket, unreachableReason } from "#core/listening.ts";
import { PROXY_LIMITS } from "./limits.ts";

interface Parts {
  /** Reads the listening sockets of a machine on any host; undefined where they cannot be read. */
  read(machine_id: string): Promise<ListenSocket[] | undefined>;
  clock: Clock;
}

interface Known {
  at: number;
  sockets: Promise<ListenSocket[] | undefined>;
}

/** Caches listening sockets briefly, so that many requests cost one read. */
export class Listening {
  readonly #parts: Parts;
  readonly #known = new Map<string, Known>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Why a port of a machine is unreachable from outside; undefined when it is reachable or the reason is unknown. */
  async reason(machine_id: string, proto: string, port: number): Promise<string | undefined> {
    const sockets = await this.#sockets(machine_id);
    return sockets && unreachableReason(sockets, { proto, port });
  }

  #sockets(machine_id: string): Known["sockets"] {
    const now = this.#parts.clock.monotonic();
    const known = this.#known.get(machine_id);
    if (known && now - known.at < PROXY_LIMITS.listening_ms) return known.sockets;
    for (const [id, { at }] of this.#known) if (now - at >= PROXY_LIMITS.listening_ms) this.#known.delete(id);
    // A machine that is stopping, or whose host does not respond, has no result.
    const sockets = this.#parts.read(machine_id).catch(() => undefined);
    this.#known.set(machine_id, { at: now, sockets });
    return sockets;
  }
}
