import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { randomIds } from "#core/ids.ts";
import type { Log } from "#core/log.ts";
import type { MachineService } from "#machines/service.ts";
import type { Directory, Entry } from "#network/directory.ts";
import { canStart, serviceAt } from "./exposure.ts";

interface StarterParts {
  directory: Directory;
  machines: Pick<MachineService, "start">;
  clock: Clock;
  log: Log;
}

interface StartRequest {
  app_id: string;
  protocol: "tcp" | "udp";
  port: number;
  reason: string;
  /** Only this machine. */
  machine_id?: string;
}

/** Preference: suspended machines resume fastest; stopping ones would have to finish first. */
const ORDER: Record<string, number> = { suspended: 0, stopped: 1, created: 2, suspending: 3, stopping: 4 };

/** Starts machines for requests: one at a time per port of an app, however many requests wait. */
export class Starter {
  readonly #parts: StarterParts;
  readonly #busy = new Set<string>();

  constructor(parts: StarterParts) {
    this.#parts = parts;
  }

  async start(request: StartRequest): Promise<void> {
    const key = `${request.app_id} ${request.protocol} ${request.port} ${request.machine_id ?? ""}`;
    if (this.#busy.has(key)) return;
    this.#busy.add(key);
    try {
      const offered = this.#parts.directory
        .machines(request.app_id)
        .filter((machine) => serviceAt(machine, request.protocol, request.port))
        .filter(({ id }) => request.machine_id === undefined || request.machine_id === id);
      if (offered.some(({ state }) => state === "starting" || state === "restarting")) return;
      await this.#startOne(offered, request);
    } finally {
      this.#busy.delete(key);
    }
  }

  /** Tries the candidates in order: a host may be full, or a machine leased. */
  async #startOne(offered: readonly Entry[], { protocol, port, reason }: StartRequest): Promise<void> {
    const { machines, clock, log } = this.#parts;
    const candidates = offered
      .filter((machine) => {
        const service = serviceAt(machine, protocol, port);
        return service && machine.state in ORDER && canStart({ machine, service });
      })
      .sort((a, b) => (ORDER[a.state] ?? 9) - (ORDER[b.state] ?? 9) || a.created_at - b.created_at);
    for (const { id } of candidates) {
      try {
        await machines.start(id, {
          name: "the proxy",
          source: "proxy",
          reason: `${reason} (port ${port})`,
          ids: randomIds(clock),
        });
        return;
      } catch (thrown) {
        log.warn({ machine: id, problem: messageOf(thrown) }, "a machine could not be started for a request");
      }
    }
  }
}
