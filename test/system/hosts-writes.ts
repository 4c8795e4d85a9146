/** Writers that go on whatever happens, and remember what was acknowledged to them; what that was must be there. */
import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import type { ControlBox } from "./hosts-house.ts";

interface Written {
  acknowledged: number;
  refused: number;
}

/** Each has a value of its own, writes the next number to it through one control and reads it at another. */
export class Writers {
  readonly #controls: readonly ControlBox[];
  readonly #done: Promise<Written>[] = [];
  #writing = true;

  constructor(controls: readonly ControlBox[]) {
    this.#controls = controls;
  }

  start(path: string): void {
    this.#done.push(this.#write(`${path}/metadata/written_${this.#done.length}`, this.#done.length));
  }

  /** Ends them; each has found at the end what was acknowledged to it last, or something newer of its own. */
  async stop(): Promise<Written> {
    this.#writing = false;
    const all = await Promise.all(this.#done);
    return {
      acknowledged: all.reduce((sum, one) => sum + one.acknowledged, 0),
      refused: all.reduce((sum, one) => sum + one.refused, 0),
    };
  }

  /** However the test ends, nobody writes on. What became of them, `stop` tells. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#writing = false;
    await Promise.allSettled(this.#done);
  }

  async #write(path: string, turn: number): Promise<Written> {
    const written: Written = { acknowledged: 0, refused: 0 };
    let tried = 0;
    let sure = 0;
    const seen = async (control: ControlBox): Promise<number | undefined> => {
      const answer = await control.call("GET", path);
      return answer?.status === 200 ? Number(answer.body["value"]) : undefined;
    };
    const check = (value: number | undefined, where: string): void => {
      if (value === undefined) return;
      assert.ok(value >= sure && value <= tried, `${path} ${where}: ${value}, acknowledged up to ${sure} of ${tried}`);
    };
    while (this.#writing) {
      const [one, other] = [this.#controls[(turn + tried) % 2], this.#controls[(turn + tried + 1) % 2]];
      assert.ok(one && other);
      const answer = await one.call("POST", path, { value: String(++tried) });
      if (answer?.status === 204) {
        sure = tried;
        written.acknowledged++;
        check(await seen(other), "read at the other");
      } else written.refused++;
      await delay(100);
    }
    for (const control of this.#controls) {
      const value = await seen(control);
      assert.notEqual(value, undefined, `${path} is there at the end`);
      check(value, "at the end");
    }
    return written;
  }
}
