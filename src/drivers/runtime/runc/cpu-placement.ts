/**
 * Places machines on the host's CPUs. A machine with fewer CPUs than the host is pinned to as many, because that is
 * what `nproc`, Go, Java and glibc count; a quota alone shows them every CPU. Machines are spread evenly: a new one
 * gets the CPUs with the fewest machines, and when others end, the remaining ones move to the CPUs that became free.
 *
 * Nothing of it is stored. After a restart of ours the CPUs of running machines are read from the kernel.
 */
import { readFileSync } from "node:fs";

/** Moves a running machine to other CPUs; returns false on failure. */
export type MoveMachine = (id: string, cpus: readonly number[]) => boolean;

interface Placed {
  cpus: readonly number[];
  /** Whether its container exists, so that it can be moved. */
  running: boolean;
}

export class CpuPlacement {
  readonly #placed = new Map<string, Placed>();
  readonly #host: () => readonly number[];
  readonly #move: MoveMachine;

  constructor(move: MoveMachine, host: () => readonly number[] = hostCpus) {
    this.#move = move;
    this.#host = host;
  }

  /** Chooses CPUs for a starting machine; undefined when it may use all. */
  place(id: string, wanted: number): readonly number[] | undefined {
    this.#placed.delete(id);
    const host = this.#host();
    if (wanted >= host.length) return undefined;
    const load = this.#load(host);
    const cpus = host
      .toSorted((a, b) => (load.get(a) ?? 0) - (load.get(b) ?? 0) || a - b)
      .slice(0, Math.max(1, Math.ceil(wanted)))
      .toSorted((a, b) => a - b);
    this.#placed.set(id, { cpus, running: false });
    return cpus;
  }

  /** Records a machine that has started, or was running before us. */
  running(id: string, cpus = this.#placed.get(id)?.cpus): void {
    if (cpus && cpus.length > 0 && cpus.length < this.#host().length) this.#placed.set(id, { cpus, running: true });
  }

  release(id: string): void {
    if (this.#placed.delete(id)) this.#rebalance();
  }

  cpusOf(id: string): readonly number[] | undefined {
    return this.#placed.get(id)?.cpus;
  }

  /** Number of machines per CPU. */
  #load(host: readonly number[]): Map<number, number> {
    const load = new Map(host.map((cpu) => [cpu, 0]));
    for (const { cpus } of this.#placed.values()) for (const cpu of cpus) load.set(cpu, (load.get(cpu) ?? 0) + 1);
    return load;
  }

  /** Each move makes the load more even, so this terminates. */
  #rebalance(): void {
    const stuck = new Set<string>();
    for (;;) {
      const load = this.#load(this.#host());
      const step = this.#nextMove(load, stuck);
      if (!step) return;
      const [id, cpus] = step;
      if (this.#move(id, cpus)) this.#placed.set(id, { cpus, running: true });
      else stuck.add(id);
    }
  }

  #nextMove(load: Map<number, number>, stuck: Set<string>): [id: string, cpus: number[]] | undefined {
    if (load.size === 0) return undefined;
    const [least, few] = [...load].reduce((a, b) => (b[1] < a[1] ? b : a));
    for (const [id, { cpus, running }] of this.#placed) {
      if (!running || stuck.has(id) || cpus.includes(least)) continue;
      const most = cpus.find((cpu) => (load.get(cpu) ?? 0) - few > 1);
      if (most === undefined) continue;
      return [id, cpus.map((cpu) => (cpu === most ? least : cpu)).toSorted((a, b) => a - b)];
    }
    return undefined;
  }
}

/** CPUs available to this process and its children. */
const hostCpus = (): readonly number[] => allowedCpus("self");

/** CPUs available to a process; none when it has ended. */
export function allowedCpus(pid: number | "self"): number[] {
  try {
    const status = readFileSync(`/proc/${pid}/status`, "utf8");
    return parseCpuList(/^Cpus_allowed_list:\s*(.*)$/m.exec(status)?.[1] ?? "");
  } catch {
    return [];
  }
}

/** Parses the kernel's format: `0,2-4`. */
export function parseCpuList(text: string): number[] {
  return text
    .trim()
    .split(",")
    .filter(Boolean)
    .flatMap((part) => {
      const [first = 0, last = first] = part.split("-").map(Number);
      return Array.from({ length: last - first + 1 }, (_, i) => first + i);
    });
}
