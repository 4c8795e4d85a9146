/**
 * Masks a credential in a provider's response: some echo the request. Each byte of it becomes a `*`, so the content
 * length stays valid, and a stream is held back only for the few bytes at the end of a chunk that might begin the
 * credential.
 */
const STAR = 42;
/** Shorter ones occur by chance. */
const MIN_BYTES = 8;

export class Mask {
  readonly #needles: Buffer[];
  #held: Buffer = Buffer.alloc(0);

  constructor(secrets: readonly string[]) {
    const forms = secrets.flatMap((secret) => [
      secret,
      encodeURIComponent(secret),
      JSON.stringify(secret).slice(1, -1),
    ]);
    this.#needles = [...new Set(forms)].filter((form) => form.length >= MIN_BYTES).map((form) => Buffer.from(form));
  }

  /** Masks a complete text, such as a header. */
  text(text: string): string {
    return this.#covered(Buffer.from(text, "latin1")).toString("latin1");
  }

  /** Returns what can be sent now. */
  push(chunk: Buffer): Buffer {
    const data = this.#covered(this.#held.length === 0 ? chunk : Buffer.concat([this.#held, chunk]));
    const keep = this.#beginning(data);
    this.#held = data.subarray(data.length - keep);
    return data.subarray(0, data.length - keep);
  }

  /** Returns what was held back. */
  end(): Buffer {
    const rest = this.#held;
    this.#held = Buffer.alloc(0);
    return rest;
  }

  #covered(data: Buffer): Buffer {
    let copy: Buffer | undefined;
    for (const needle of this.#needles) {
      for (let at = data.indexOf(needle); at >= 0; at = data.indexOf(needle, at + needle.length)) {
        // The chunk may be shared with its producer.
        copy ??= Buffer.from(data);
        copy.fill(STAR, at, at + needle.length);
      }
    }
    return copy ?? data;
  }

  /** Length of a suffix that may begin a credential. */
  #beginning(data: Buffer): number {
    return Math.max(0, ...this.#needles.map((needle) => beginningOf(needle, data)));
  }
}

function beginningOf(needle: Buffer, data: Buffer): number {
  const first = needle[0] ?? 0;
  let at = data.indexOf(first, Math.max(0, data.length - needle.length + 1));
  while (at >= 0) {
    if (data.compare(needle, 0, data.length - at, at) === 0) return data.length - at;
    at = data.indexOf(first, at + 1);
  }
  return 0;
}
