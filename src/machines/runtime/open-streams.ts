import type { Duplex } from "node:stream";

/** Open connections to machines, by machine, so that they end with the boot that they lead to. */
export class OpenStreams {
  readonly #open = new Map<string, Set<Duplex>>();

  add<Stream extends Duplex>(id: string, stream: Stream): Stream {
    const all = this.#open.get(id) ?? new Set();
    this.#open.set(id, all.add(stream));
    stream.once("close", () => {
      all.delete(stream);
      if (all.size === 0 && this.#open.get(id) === all) this.#open.delete(id);
    });
    return stream;
  }

  has(id: string): boolean {
    return this.#open.has(id);
  }

  /** A suspended machine answers nothing, and its peer would wait: its connections are closed. */
  end(id: string): void {
    for (const stream of this.#open.get(id) ?? []) stream.destroy();
  }

  close(): void {
    for (const id of this.#open.keys()) this.end(id);
  }
}
