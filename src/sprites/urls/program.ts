/** The program in a sprite that answers requests to its URL. */
import { Duplex, Readable } from "node:stream";
import { ApiError } from "#core/errors.ts";
import { portOf } from "#core/listening.ts";
import type { Ref, RuntimeDriver } from "#machines/runtime/driver.ts";
import { dialSprite } from "../ports/dial.ts";
import { Refusal } from "./admission.ts";

type Driver = Pick<RuntimeDriver, "connect" | "process" | "ps">;

/** Which port answered last. Which others there are is looked up when that one does not. */
export class Programs {
  readonly #driver: Driver;
  readonly #ports = new Map<string, number>();

  constructor(driver: Driver) {
    this.#driver = driver;
  }

  /** Connects to the port that answered before, else to 8080, else to the first that listens. */
  async connect(ref: Ref, name: string, signal: AbortSignal): Promise<Duplex> {
    const known = this.#ports.get(ref.id);
    const before = known === undefined ? undefined : await this.#dial(ref, known, signal);
    if (before) return before;
    this.#ports.delete(ref.id);
    for (const port of await this.#listening(ref)) {
      const stream = await this.#dial(ref, port, signal);
      if (!stream) continue;
      this.#ports.set(ref.id, port);
      return stream;
    }
    throw new Refusal(502, `no program in the sprite ${name} listens on a port: start one, such as on port ${USUAL}`);
  }

  forget(machine_id: string): void {
    this.#ports.delete(machine_id);
  }

  async #dial(ref: Ref, port: number, signal: AbortSignal): Promise<Duplex | undefined> {
    try {
      const { pieces, writable, close } = await dialSprite(this.#driver, ref, port, signal);
      const readable = Readable.from({ [Symbol.asyncIterator]: () => pieces }, { objectMode: false });
      const stream = Duplex.from({ readable, writable });
      stream.once("close", close);
      return stream;
    } catch (thrown) {
      if (thrown instanceof ApiError && thrown.code === "port_unreachable") return undefined;
      throw thrown;
    }
  }

  async #listening(ref: Ref): Promise<number[]> {
    const sockets = (await this.#driver.ps(ref)).flatMap(({ listen_sockets }) => listen_sockets);
    const ports = new Set(sockets.filter(({ proto }) => proto === "tcp").map(({ address }) => portOf(address)));
    return [...(ports.delete(USUAL) ? [USUAL] : []), ...ports].slice(0, TRIED);
  }
}

const USUAL = 8080;
/** Programs of other protocols listen too, and accept. */
const TRIED = 20;
