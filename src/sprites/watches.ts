import { fail } from "#core/errors.ts";
import { SPRITE_LIMITS } from "./limits.ts";
import type { SpriteView } from "./types.ts";

/** Counts who watches files or ports of each sprite: every one costs a program in it, or a look at it each second. */
export class Watches {
  readonly #open = new Map<string, number>();

  /** Fails before the work begins when there are enough already. */
  async during(sprite: Pick<SpriteView, "id" | "name">, work: () => Promise<void>): Promise<void> {
    const most = SPRITE_LIMITS.sprite_watches;
    if ((this.#open.get(sprite.id) ?? 0) >= most)
      fail("limit_reached", `sprite ${sprite.name} is watched ${most} times (limit sprite_watches); close one`);
    this.#count(sprite.id, 1);
    try {
      await work();
    } finally {
      this.#count(sprite.id, -1);
    }
  }

  #count(id: string, change: number): void {
    const now = (this.#open.get(id) ?? 0) + change;
    if (now > 0) this.#open.set(id, now);
    else this.#open.delete(id);
  }
}
