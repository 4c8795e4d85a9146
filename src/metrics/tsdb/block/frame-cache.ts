/** An unpacked frame and where its chunks begin. */
export interface UnpackedFrame {
  bytes: Uint8Array;
  /** n + 1 places; a series without a chunk has an empty run. */
  offsets: Uint32Array;
}

/** What can be kept unpacked: finding it again is looking at a field. */
export interface Keeper {
  unpacked?: UnpackedFrame | undefined;
}

/**
 * Forgets the frames unpacked first. Series come out of a selection in the order of the files, so the next
 * series mostly lies in the frame at hand, and a frame that was left behind is not needed again.
 */
export class FrameCache {
  readonly #kept: Keeper[] = [];
  readonly #most: number;
  #bytes = 0;

  constructor(most_bytes: number) {
    this.#most = most_bytes;
  }

  keep(keeper: Keeper, frame: UnpackedFrame): void {
    keeper.unpacked = frame;
    this.#kept.push(keeper);
    this.#bytes += frame.bytes.length;
    while (this.#bytes > this.#most && this.#kept.length > 1) {
      const oldest = this.#kept.shift();
      const unpacked = oldest?.unpacked;
      if (!oldest || !unpacked) continue;
      oldest.unpacked = undefined;
      this.#bytes -= unpacked.bytes.length;
      free(unpacked.bytes);
    }
  }
}

/**
 * At once: megabytes a second that wait for the collector make it come too often. Nobody reads a forgotten frame, and
 * unpacking gave each a buffer of its own.
 */
function free({ buffer }: Uint8Array): void {
  if (buffer instanceof ArrayBuffer) buffer.transfer(0);
}
