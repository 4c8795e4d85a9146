/** The blocks of logs that are still written, so that a search reads only what came since the one before. */
import { type Block, blocksOf } from "./parse.ts";

/** Logs that are remembered. */
const LOGS = 1000;

interface Growing {
  /** The same for the same file, whatever it is renamed to. */
  key: string;
  size: number;
  /** From a place to its end. */
  read(at: number): Promise<Buffer>;
}

export class GrowingBlocks {
  readonly #known = new Map<string, { size: number; blocks: Block[] }>();

  async blocks({ key, size, read }: Growing): Promise<Block[]> {
    const known = this.#known.get(key);
    if (known?.size === size) return known.blocks;
    // All but the last block stay as they are. A smaller file was truncated.
    const kept = known && known.size < size ? known.blocks.slice(0, -1) : [];
    const last = kept.at(-1);
    const from = last ? last.from + last.length : 0;
    const added = blocksOf(await read(from)).map((block) => ({ ...block, from: from + block.from }));
    const blocks = [...kept, ...added];
    this.#known.delete(key);
    this.#known.set(key, { size, blocks });
    const [oldest] = this.#known.keys();
    if (this.#known.size > LOGS && oldest !== undefined) this.#known.delete(oldest);
    return blocks;
  }
}
