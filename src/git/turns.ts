import { Slots } from "#core/slots.ts";

/** One deploy at a time per app, from any source. */
export class Turns {
  readonly #turns = new Map<string, { slots: Slots; users: number }>();

  async take(app_id: string, onWait: () => void, work: () => Promise<void>, signal?: AbortSignal): Promise<void> {
    const turn = this.#turns.get(app_id) ?? { slots: new Slots(1), users: 0 };
    this.#turns.set(app_id, turn);
    if (turn.users++ > 0) onWait();
    try {
      await turn.slots.use(work, signal);
    } finally {
      if (--turn.users === 0) this.#turns.delete(app_id);
    }
  }
}
