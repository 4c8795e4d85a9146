import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { type Ids, randomIds } from "#core/ids.ts";
import type { RuntimeDriver } from "#machines/runtime/driver.ts";
import { SPRITE_LIMITS } from "../limits.ts";
import type { SpriteService } from "../service.ts";
import type { SpriteView } from "../types.ts";
import type { ExecInput } from "./input.ts";
import { openProgram } from "./program.ts";
import { ExecSession } from "./session.ts";

export interface ExecParts {
  sprites: SpriteService;
  driver: RuntimeDriver;
  clock: Clock;
}

const ID_DIGITS = 12;

/** The commands that run in sprites, started through this process. They end with it. */
export class ExecSessions {
  readonly #parts: ExecParts;
  readonly #ids: Ids;
  readonly #open = new Map<string, Map<string, ExecSession>>();
  #all = 0;

  constructor(parts: ExecParts) {
    this.#parts = parts;
    this.#ids = randomIds(parts.clock);
  }

  /** Starts a command, waking the sprite, which stays awake until the command has ended. */
  async start(sprite: SpriteView, input: ExecInput, signal: AbortSignal): Promise<ExecSession> {
    const { sprites, driver, clock } = this.#parts;
    this.#check(sprite);
    this.#all++;
    const rest = await sprites.activity.begin(sprite.id);
    const over = (): void => {
      this.#all--;
      rest();
    };
    try {
      const { ref } = await sprites.awake(sprite, signal);
      const program = await openProgram(driver, ref, input, signal);
      const session = new ExecSession(this.#ids.hex(ID_DIGITS), { input, program, clock });
      const all = this.#open.get(sprite.id) ?? new Map<string, ExecSession>();
      this.#open.set(sprite.id, all.set(session.id, session));
      void session.over.then(() => {
        all.delete(session.id);
        if (all.size === 0 && this.#open.get(sprite.id) === all) this.#open.delete(sprite.id);
        over();
      });
      return session;
    } catch (thrown) {
      over();
      throw thrown;
    }
  }

  /** Oldest first. */
  list({ id }: SpriteView): ExecSession[] {
    return [...(this.#open.get(id)?.values() ?? [])];
  }

  get({ id, name }: SpriteView, session_id: string): ExecSession {
    const found = this.#open.get(id)?.get(session_id);
    return found ?? fail("not_found", `sprite ${name} has no session ${session_id.slice(0, ID_SHOWN)}`);
  }

  close(): void {
    for (const all of this.#open.values()) for (const session of all.values()) session.close();
  }

  #check({ id, name }: SpriteView): void {
    const { sprite_commands, sprite_commands_all } = SPRITE_LIMITS;
    if ((this.#open.get(id)?.size ?? 0) >= sprite_commands)
      fail("limit_reached", `sprite ${name} runs ${sprite_commands} commands (limit sprite_commands)`);
    if (this.#all >= sprite_commands_all)
      fail("overloaded", `sprites run ${sprite_commands_all} commands (limit sprite_commands_all)`, {
        retry_after_s: 5,
      });
  }
}

const ID_SHOWN = 64;
