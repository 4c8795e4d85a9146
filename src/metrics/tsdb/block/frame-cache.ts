/** An unpacked frame and where its chunks begin. */
export interface UnpackedFrame {
  bytes: Uint8Array;
  /** n + 1 places; a series without a chunk has an empty run. */
  offsets: Uint32Array;
}

/** Holds a cached frame in a field, for fast lookup. */
export interface Keeper {
  unpacked?: UnpackedFrame | undefined;
}

/**
 * Drops the oldest frames first. A selection reads series in file order, so the next one is mostly in the current
 * frame.
 */
export class FrameCache {
  readonly #keepers: Keeper[] = [];
  readonly #most: number;
  #bytes = 0;

  constructor(most_bytes: number) {
    this.#most = most_bytes;
  }

  keep(keeper: Keeper, frame: UnpackedFrame): void {
    keeper.unpacked = frame;
    this.#keepers.push(keeper);
    this.#bytes += frame.bytes.length;
    while (this.#bytes > this.#most && this.#keepers.length > 1) {
      const oldest = this.#keepers.shift();
      const unpacked = oldest?.unpacked;
      if (!oldest || !unpacked) continue;
      oldest.unpacked = undefined;
      this.#bytes -= unpacked.bytes.length;
      free(unpacked.bytes);
    }
  }
}

/** Freed at once: megabytes per second of garbage would trigger too many collections. Each frame has its own buffer. */
function free({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}
