/** Logs of simulated machines as queues. Positions outlive the driver with the world, as files would. */
import type { LogQueue, QueuePage } from "#machines/logs/queue.ts";
import type { SimWorld } from "./world.ts";

/** Lines of one page. */
const PAGE = 1000;

export class SimLogQueue implements LogQueue {
  readonly #world: SimWorld;

  constructor(world: SimWorld) {
    this.#world = world;
  }

  async machines(): Promise<string[]> {
    return [...this.#world.boots.keys()];
  }

  mark(id: string): string {
    return String(this.#log(id).length);
  }

  async read(id: string, from: { position: string } | { since: number }): Promise<QueuePage> {
    const after = "position" in from ? Number(from.position) : -1;
    const since = "since" in from ? from.since : 0;
    const page = this.#log(id)
      .filter(({ seq, timestamp }) => seq > after && timestamp >= since)
      .slice(0, PAGE);
    const lines = page.map(({ timestamp, message }) => ({
      timestamp,
      message,
      stream: "stdout" as const,
      stamp: new Date(timestamp).toISOString().replace("Z", "000000Z"),
    }));
    return { lines, position: String(page.at(-1)?.seq ?? after), is_end: page.length === 0 };
  }

  async position(id: string, reader: string): Promise<string | undefined> {
    return this.#world.positions.get(`${id} ${reader}`);
  }

  async keep(id: string, reader: string, position: string): Promise<void> {
    this.#world.positions.set(`${id} ${reader}`, position);
  }

  async forget(readers: ReadonlySet<string>): Promise<void> {
    for (const key of this.#world.positions.keys())
      if (!readers.has(key.split(" ")[1] ?? "")) this.#world.positions.delete(key);
  }

  #log(id: string) {
    return this.#world.boots.get(id)?.log ?? [];
  }
}
