/** What machines wrote, of one or of many together. */
import type { Clock } from "#core/clock.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { LogLine, RuntimeDriver } from "../runtime/driver.ts";
import type { MachineStore } from "../store.ts";

export interface LogSource {
  id: string;
  name: string;
  host_id: string;
}

export interface MergedLine extends LogLine {
  machine_id: string;
  machine_name: string;
}

interface LogParts {
  driver: RuntimeDriver;
  store: MachineStore;
  clock: Clock;
}

type Wanted = { tail: number; since?: number };

/** Where following begins after a search, and which lines it wants. */
export interface LiveFrom {
  cursors: Record<string, string>;
  matches(message: string): boolean;
}

export class Logs {
  readonly #parts: LogParts;

  constructor(parts: LogParts) {
    this.#parts = parts;
  }

  /** Machines of an app that may have logs, including destroyed ones; the most recently changed ones. */
  async machinesOf(app_id: string, most: number = MACHINE_LIMITS.logs_machines): Promise<LogSource[]> {
    return (await this.choose(app_id, undefined, most)).sources;
  }

  /** Those machines, or the one with this id or name; and how many there are beyond `most`. */
  async choose(
    app_id: string,
    machine: string | undefined,
    most: number = MACHINE_LIMITS.logs_machines,
  ): Promise<{ sources: LogSource[]; left_out: number }> {
    const all = await this.#parts.store.list(app_id, { include_deleted: true });
    const wanted = machine === undefined ? all : all.filter(({ id, name }) => id === machine || name === machine);
    const sources = wanted
      .toSorted((a, b) => b.updated_at - a.updated_at)
      .slice(0, most)
      .map(({ id, name, host_id }) => ({ id, name, host_id }));
    return { sources, left_out: wanted.length - sources.length };
  }

  async newest(sources: readonly LogSource[], wanted: Wanted): Promise<MergedLine[]> {
    const pages = await Promise.all(sources.map((source) => this.#read(source, wanted)));
    return byTime(pages.flatMap(({ lines }) => lines)).slice(wanted.tail > 0 ? -wanted.tail : Infinity);
  }

  /**
   * Streams the newest lines, then new ones, until `signal`. Each machine is read from the end of its last page, so a
   * slow reader buffers one page and misses only lines that were deleted. The list of machines is read again at each
   * poll; a new machine is read from its beginning. `live` goes on where a search ended.
   */
  async *follow(
    sources: () => Promise<LogSource[]>,
    wanted: Wanted,
    signal: AbortSignal,
    live?: LiveFrom,
  ): AsyncGenerator<MergedLine[]> {
    const cursors = new Map(Object.entries(live?.cursors ?? {}));
    const watches = new Map<string, () => void>();
    let bell = Promise.withResolvers<void>();
    const watch = ({ id }: LogSource): void => {
      if (!watches.has(id))
        watches.set(
          id,
          this.#parts.driver.watchLogs(id, () => bell.resolve()),
        );
    };
    const all = { tail: MACHINE_LIMITS.logs_page * MACHINE_LIMITS.logs_machines };
    let from = live ? all : wanted;
    try {
      while (!signal.aborted) {
        const members = await sources();
        for (const member of members) watch(member);
        const lines = await this.#next(members, cursors, from);
        const newest = lines.slice(Math.max(0, lines.length - from.tail));
        const shown = live ? newest.filter(({ message }) => live.matches(message)) : newest;
        from = all;
        if (shown.length > 0) yield shown;
        if (lines.length === 0) await this.#pause(bell.promise, signal);
        bell = Promise.withResolvers<void>();
      }
    } finally {
      for (const end of watches.values()) end();
    }
  }

  async #next(members: readonly LogSource[], cursors: Map<string, string>, fresh: Wanted): Promise<MergedLine[]> {
    const pages = await Promise.all(
      members.map(async (source) => {
        const cursor = cursors.get(source.id);
        const page = await this.#read(source, cursor === undefined ? fresh : { cursor });
        cursors.set(source.id, page.cursor);
        return page.lines;
      }),
    );
    return byTime(pages.flat());
  }

  async #read({ id, name, host_id }: LogSource, from: Wanted | { cursor: string }) {
    const { lines, cursor } = await this.#parts.driver.logs(id, from, host_id);
    return { cursor, lines: lines.map((line) => ({ ...line, machine_id: id, machine_name: name })) };
  }

  async #pause(woken: Promise<void>, signal: AbortSignal): Promise<void> {
    const over = new AbortController();
    const later = this.#parts.clock.sleep(MACHINE_LIMITS.logs_look_ms, AbortSignal.any([signal, over.signal]));
    await Promise.race([woken, later.catch(() => {})]);
    over.abort();
  }
}

const byTime = (lines: MergedLine[]): MergedLine[] => lines.sort((a, b) => a.timestamp - b.timestamp);
