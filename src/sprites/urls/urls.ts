import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { Guard } from "#http/access.ts";
import type { RuntimeDriver } from "#machines/runtime/driver.ts";
import { SPRITE_LIMITS } from "../limits.ts";
import type { SpriteService } from "../service.ts";
import type { SpriteStore } from "../store.ts";
import { Admission } from "./admission.ts";
import { UrlGate } from "./gate.ts";
import { portsOf, type UrlPlace } from "./names.ts";
import { Programs } from "./program.ts";

/** The edge proxy of this process. */
interface Edge {
  serveOwn(own: {
    name: string;
    hostnames: string[];
    ports: { port: number; tls: boolean }[];
    local_port: number;
  }): void;
}

interface UrlParts {
  store: SpriteStore;
  sprites: SpriteService;
  driver: RuntimeDriver;
  guard: Guard;
  edge: Edge;
  clock: Clock;
  log: Log;
}

/** Opens the URLs of sprites when the first organization has some: until then their ports stay free. */
export class SpriteUrls {
  readonly #parts: UrlParts;
  readonly #place: UrlPlace;
  readonly #admission: Admission;
  readonly #gate: UrlGate;
  readonly #over = new AbortController();
  #running: Promise<void> | undefined;
  #opening: Promise<void> | undefined;

  constructor(parts: UrlParts, place: UrlPlace) {
    this.#parts = parts;
    this.#place = place;
    this.#admission = new Admission({ ...parts, zone: place.zone });
    this.#gate = new UrlGate({ ...parts, admission: this.#admission, programs: new Programs(parts.driver) });
  }

  start(): void {
    this.#running = this.#run();
  }

  async close(): Promise<void> {
    this.#over.abort();
    await this.#running;
    await this.#opening?.catch(() => {});
    await this.#gate.close();
  }

  /** There is a sprite: its URL works from now on. */
  async open(): Promise<void> {
    this.#admission.expectOrg();
    this.#opening ??= this.#open().catch((error: unknown) => {
      // The next sprite tries again.
      this.#opening = undefined;
      throw error;
    });
    await this.#opening;
  }

  async #open(): Promise<void> {
    const { zone } = this.#place;
    const local_port = await this.#gate.start();
    this.#parts.edge.serveOwn({ name: "sprites", hostnames: [`*.${zone}`], ports: portsOf(this.#place), local_port });
  }

  /** Another process may have made the first one. */
  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    const { signal } = this.#over;
    while (!signal.aborted && !this.#opening) {
      const needed = await this.#admission.isNeeded().catch((error: unknown) => {
        log.warn({ error }, "sprites could not be looked for");
        return false;
      });
      if (needed) await this.open().catch((error: unknown) => log.warn({ error }, "URLs of sprites cannot be opened"));
      await clock.sleep(SPRITE_LIMITS.sprite_sweep_ms, signal).catch(() => {});
    }
  }
}
