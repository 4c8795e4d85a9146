import { readdirSync, unlinkSync } from "node:fs";
import { basename, join } from "node:path";
import type { Labels } from "../../source.ts";
import { DamagedBytes } from "../bytes.ts";
import { makeDir, type Quarantine, syncDir } from "../files.ts";
import { Block } from "./block.ts";
import { FrameCache } from "./frame-cache.ts";
import { asStorageError, type BlockContent, BlockWriter, blockPath, parseBlockName } from "./writer.ts";

/** How long block work may occupy the thread. */
const TURN_MS = 20;

/** The blocks of an org, oldest written first. */
export class BlockStore {
  readonly #dir: string;
  readonly #cache: FrameCache;
  readonly #quarantine: Quarantine;
  readonly #register: (labels: Labels) => number;
  readonly #monotonic: () => number;
  #blocks: readonly Block[] = [];
  #sequence = 0;

  constructor(
    dir: string,
    cache_bytes: number,
    quarantine: Quarantine,
    register: (labels: Labels) => number,
    monotonic: () => number,
  ) {
    this.#dir = dir;
    this.#cache = new FrameCache(cache_bytes);
    this.#quarantine = quarantine;
    this.#register = register;
    this.#monotonic = monotonic;
    makeDir(dir);
    this.#openAll();
  }

  /** Copied on write: a selection keeps its list. */
  get list(): readonly Block[] {
    return this.#blocks;
  }

  get bytes(): number {
    return this.#blocks.reduce((sum, block) => sum + block.bytes, 0);
  }

  /** Writes and opens a block, and deletes those it replaces. Undefined when there is nothing to write. */
  async write(content: BlockContent, stopped: () => boolean): Promise<Block | undefined> {
    const { start_ms, end_ms } = content;
    const path = blockPath(this.#dir, { start_ms, end_ms, sequence: ++this.#sequence });
    const writer = new BlockWriter(path, content);
    try {
      await this.#inTurns(writer.write(), stopped);
      const replaced_names = new Set(content.replaces);
      const replaced = this.#blocks.filter((old) => replaced_names.has(basename(old.path)));
      // A damaged block is quarantined before the new one makes it obsolete.
      for (const { path, damage } of replaced) if (damage.length > 0) this.#quarantine.keep(path, damage.join("; "));
      if (writer.samples === 0) writer.abandon();
      else await writer.finish();
      return this.#replace(writer.samples === 0 ? undefined : path, replaced);
    } catch (thrown) {
      writer.abandon();
      throw asStorageError(thrown);
    }
  }

  remove(blocks: readonly Block[]): void {
    if (blocks.length === 0) return;
    this.#blocks = this.#blocks.filter((block) => !blocks.includes(block));
    for (const block of blocks) {
      block.close();
      unlinkSync(block.path);
    }
    syncDir(this.#dir);
  }

  #replace(path: string | undefined, replaced: readonly Block[]): Block | undefined {
    const block = path === undefined ? undefined : new Block(path, this.#cache, this.#register);
    this.remove(replaced);
    if (block) this.#blocks = [...this.#blocks, block].sort(byAge);
    return block;
  }

  close(): void {
    for (const block of this.#blocks) block.close();
    this.#blocks = [];
  }

  /** Removes leftovers of interrupted work, quarantines unreadable blocks, and opens the rest. */
  #openAll(): void {
    const opened: Block[] = [];
    for (const file of readdirSync(this.#dir)) {
      const path = join(this.#dir, file);
      const name = parseBlockName(file);
      if (file.endsWith(".tmp")) unlinkSync(path);
      if (!name) continue;
      this.#sequence = Math.max(this.#sequence, name.sequence);
      try {
        opened.push(new Block(path, this.#cache, this.#register));
      } catch (thrown) {
        if (!(thrown instanceof DamagedBytes)) throw thrown;
        this.#quarantine.move(path, thrown.message);
      }
    }
    this.#blocks = opened.sort(byAge);
    const replaced = new Set(opened.flatMap(({ directory }) => directory.replaces));
    this.remove(opened.filter(({ path }) => replaced.has(basename(path))));
  }

  async #inTurns(work: Generator<void>, stopped: () => boolean): Promise<void> {
    let turn = this.#monotonic();
    while (work.next().done !== true) {
      if (stopped()) throw new Error("stopped");
      if (this.#monotonic() - turn < TURN_MS) continue;
      await new Promise<void>((resolve) => setImmediate(resolve));
      turn = this.#monotonic();
    }
  }
}

function byAge(a: Block, b: Block): number {
  return a.name.sequence - b.name.sequence;
}
