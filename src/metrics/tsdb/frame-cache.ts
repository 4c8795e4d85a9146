/** An unpacked frame and where its chunks begin. */
export interface UnpackedFrame {
  bytes: Uint8Array;
  /** n + 1 places; a series without a chunk has an empty run. */
  offsets: Uint32Array;
}

/**
 * The frames read last. Series come out of a selection in the order of the files, so the next series mostly
 * lies in the frame at hand; a query over several blocks has one such frame per block.
 */
export class FrameCache {
  readonly #frames = new Map<string, UnpackedFrame>();
  readonly #most: number;
  #bytes = 0;

  constructor(most_bytes: number) {
    this.#most = most_bytes;
  }

  get(key: string): UnpackedFrame | undefined {
    const frame = this.#frames.get(key);
    if (!frame) return undefined;
    // Taken out and put back: a Map keeps the order of insertion, so the first is the one longest unused.
    this.#frames.delete(key);
    this.#frames.set(key, frame);
    return frame;
  }

  set(key: string, frame: UnpackedFrame): void {
    this.#frames.set(key, frame);
    this.#bytes += frame.bytes.length;
    for (const [oldest, { bytes }] of this.#frames) {
      if (this.#bytes <= this.#most || oldest === key) break;
      this.#frames.delete(oldest);
      this.#bytes -= bytes.length;
    }
  }
}
