/** Runs callers one at a time, in the order of their calls. A failure does not affect the next one. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  async acquire<T>(work: () => Promise<T> | T): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => undefined);
    return await turn;
  }
}
