/** One piece of work after the other, in the order they were asked for. One that fails does not keep the next from its turn. */
export class Mutex {
  #last: Promise<unknown> = Promise.resolve();

  async acquire<T>(work: () => Promise<T> | T): Promise<T> {
    const turn = this.#last.then(work);
    this.#last = turn.catch(() => undefined);
    return await turn;
  }
}
