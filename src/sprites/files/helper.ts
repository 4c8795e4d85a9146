/** Runs the file helper in sprites. What it does is bounded by the machine that it runs in, and it alone knows paths. */

import { finished } from "node:stream/promises";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { Slots } from "#core/slots.ts";
import type { MachineProcess, RuntimeDriver } from "#machines/runtime/driver.ts";
import { FILE_HELPER, MACHINE_ROOT } from "#machines/runtime/file-helper.ts";
import { SPRITE_LIMITS } from "../limits.ts";
import type { SpriteService } from "../service.ts";
import type { SpriteView } from "../types.ts";
import { fileError } from "./errors.ts";

export interface FileParts {
  sprites: SpriteService;
  driver: Pick<RuntimeDriver, "process">;
  clock: Clock;
}

export interface FileCall {
  /** The operation and its words. */
  words: readonly string[];
  /** The path that an error names. */
  path: string;
  /** It lasts as long as its reader or writer does. */
  is_long?: boolean;
}

export interface FileRun extends Pick<MachineProcess, "stdin" | "stdout" | "ended"> {
  /** Waits for the end; fails as the operation did. */
  finished(): Promise<void>;
}

interface Use {
  slots: Slots;
  open: number;
}

const ERROR_BYTES = 200;

export class FileHelper {
  readonly #parts: FileParts;
  readonly #uses = new Map<string, Use>();

  constructor(parts: FileParts) {
    this.#parts = parts;
  }

  /** Wakes the sprite, and keeps it awake while `work` lasts. More calls than a sprite has room for wait. */
  async run<T>(
    sprite: SpriteView,
    call: FileCall,
    signal: AbortSignal,
    work: (run: FileRun) => Promise<T>,
  ): Promise<T> {
    const use = this.#uses.get(sprite.id) ?? { slots: new Slots(SPRITE_LIMITS.file_operations), open: 0 };
    const most = SPRITE_LIMITS.file_operations_waiting;
    if (use.open >= most)
      fail(
        "overloaded",
        `sprite ${sprite.name} has ${most} operations on files waiting (limit file_operations_waiting)`,
        {
          retry_after_s: 1,
        },
      );
    this.#uses.set(sprite.id, use);
    use.open++;
    try {
      return await use.slots.use(async () => await this.#inSprite(sprite, call, signal, work), signal);
    } finally {
      use.open--;
      if (use.open === 0) this.#uses.delete(sprite.id);
    }
  }

  /** The same without a place among the operations, for what lasts. */
  async beside<T>(
    sprite: SpriteView,
    call: FileCall,
    signal: AbortSignal,
    work: (run: FileRun) => Promise<T>,
  ): Promise<T> {
    return await this.#inSprite(sprite, { ...call, is_long: true }, signal, work);
  }

  async #inSprite<T>(
    sprite: SpriteView,
    { words, path, is_long = false }: FileCall,
    signal: AbortSignal,
    work: (run: FileRun) => Promise<T>,
  ): Promise<T> {
    const { sprites, driver, clock } = this.#parts;
    return await sprites.use(
      sprite,
      async (ref) => {
        const program = await driver.process(ref, { command: [FILE_HELPER, MACHINE_ROOT, ...words] }, signal);
        const over = new AbortController();
        let is_late = false;
        const end = (): void => program.kill();
        signal.addEventListener("abort", end, { once: true });
        if (!is_long)
          void clock.sleep(SPRITE_LIMITS.file_operation_ms, over.signal).then(
            () => {
              is_late = true;
              end();
            },
            () => {},
          );
        try {
          return await work(runOf(program, path));
        } catch (thrown) {
          signal.throwIfAborted();
          if (is_late) fail("wait_timeout", `${words[0]} of ${path} takes too long (limit file_operation_ms)`);
          throw thrown;
        } finally {
          over.abort();
          signal.removeEventListener("abort", end);
          end();
        }
      },
      signal,
    );
  }
}

function runOf({ stdin, stdout, stderr, ended }: MachineProcess, path: string): FileRun {
  let said = "";
  stderr.on("data", (piece: Buffer) => {
    if (said.length < ERROR_BYTES) said += piece.toString();
  });
  const silent = finished(stderr, { writable: false }).catch(() => {});
  return {
    stdin,
    stdout,
    ended,
    async finished() {
      const { exit_code } = await ended;
      if (exit_code === 0) return;
      await silent;
      const [, errno, call = ""] = /^(\d+) (\w+)\n/.exec(said) ?? [];
      if (errno !== undefined) throw fileError(Number(errno), call, path);
      fail("wrong_state", `the sprite stopped, or ended what worked on its files (${exit_code}); repeat the request`);
    },
  };
}
