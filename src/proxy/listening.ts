/** What machines listen on, for those who find a port of theirs closed. */
import type { Clock } from "#core/clock.ts";
import { type ListenSocket, unreachableReason } from "#core/listening.ts";
import { PROXY_LIMITS } from "./limits.ts";

interface Parts {
  /** Read from the machine's network, wherever it runs; undefined where that cannot be known. */
  read(machine_id: string): Promise<ListenSocket[] | undefined>;
  clock: Clock;
}

interface Known {
  at: number;
  sockets: Promise<ListenSocket[] | undefined>;
}

/** Remembers for a moment what was read: many who ask at once cost one look. */
export class Listening {
  readonly #parts: Parts;
  readonly #known = new Map<string, Known>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Why nothing from outside reaches a port of a machine; undefined when something does, or when that is not known. */
  async reason(machine_id: string, proto: string, port: number): Promise<string | undefined> {
    const sockets = await this.#sockets(machine_id);
    return sockets && unreachableReason(sockets, { proto, port });
  }

  #sockets(machine_id: string): Known["sockets"] {
    const now = this.#parts.clock.monotonic();
    const known = this.#known.get(machine_id);
    if (known && now - known.at < PROXY_LIMITS.listening_ms) return known.sockets;
    for (const [id, { at }] of this.#known) if (now - at >= PROXY_LIMITS.listening_ms) this.#known.delete(id);
    // A machine that stops just then, or whose host does not answer, says nothing.
    const sockets = this.#parts.read(machine_id).catch(() => undefined);
    this.#known.set(machine_id, { at: now, sockets });
    return sockets;
  }
}
