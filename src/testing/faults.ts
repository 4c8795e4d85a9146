import type { FastifyReply } from "fastify";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { SimOptions } from "#drivers/runtime/sim/driver.ts";
import type { Around } from "#http/server-parts.ts";
import type { Fault, Faults, HostFault, RequestFault, SetFault } from "./fault.ts";

export class FaultList implements Faults {
  readonly #clock: Clock;
  readonly #set = new Set<{ fault: Fault; happened: number }>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  add(fault: Fault): SetFault {
    const one = { fault, happened: 0 };
    this.#set.add(one);
    return {
      fault,
      get happened() {
        return one.happened;
      },
      remove: () => void this.#set.delete(one),
    };
  }

  clear(): void {
    this.#set.clear();
  }

  list(): { fault: Fault; happened: number }[] {
    return [...this.#set].map((one) => ({ ...one }));
  }

  readonly around: Around = async (row, reply, work) => {
    const name = `${row.method} ${row.path}`;
    const params = reply.request.params as Record<string, string>;
    const fault = this.#take(
      (one): one is RequestFault =>
        "route" in one &&
        (one.route === "*" || one.route === name) &&
        Object.entries(one.params ?? {}).every(([key, value]) => params[key] === value),
    );
    if (!fault) return await work();
    await this.#delay(fault);
    if (fault.fail) fail(fault.fail, `fault injected by the emulator: ${name}`, { retry_after_s: 1 });
    if (!fault.hang_up) return await work();
    return await hangUp(fault.hang_up, reply, work);
  };

  readonly host: NonNullable<SimOptions["fault"]> = async (call, id, signal) => {
    const fault = this.#take(
      (one): one is HostFault =>
        "host" in one && one.host === call && (one.machine === undefined || one.machine === id),
    );
    if (!fault) return;
    await this.#delay(fault, signal);
    if (fault.fail) throw new Error(fault.fail);
  };

  #take<F extends Fault>(fits: (fault: Fault) => fault is F): F | undefined {
    for (const one of this.#set) {
      const { fault } = one;
      if (!fits(fault)) continue;
      one.happened++;
      if (one.happened >= (fault.times ?? 1)) this.#set.delete(one);
      return fault;
    }
    return undefined;
  }

  async #delay({ delay_ms = 0 }: Fault, signal?: AbortSignal): Promise<void> {
    if (delay_ms > 0) await this.#clock.sleep(delay_ms, signal);
  }
}

async function hangUp(when: "before" | "after", { raw }: FastifyReply, work: () => Promise<FastifyReply>) {
  if (when === "before") {
    raw.destroy();
    return fail("overloaded", "fault injected by the emulator: connection closed");
  }
  // The head is the first thing that is sent: the connection ends in its place.
  raw.writeHead = () => raw.destroy();
  return await work();
}
