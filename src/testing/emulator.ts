import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "#client/client.ts";
import { systemClock } from "#core/clock.ts";
import { parseDuration } from "#core/durations.ts";
import { MovingClock } from "#core/moving-clock.ts";
import { readSettings } from "#core/settings.ts";
import { SimWorld } from "#drivers/runtime/sim/world.ts";
import { BACKUP_FILES, backup, restore } from "#stores/backup.ts";
import type { Database } from "#stores/database.ts";
import { inlineSqlite } from "#stores/sqlite/inline.ts";
import { type Platform, startPlatform as startReal } from "../platform.ts";
import type { Faults } from "./fault.ts";
import { FaultList } from "./faults.ts";
import { EmulatorListener } from "./listener.ts";

export interface EmulatorOptions {
  /** Where it listens: `127.0.0.1` and any free port when left out. */
  host?: string;
  port?: number;
  /** Begins with this state, which `save` or `hangar backup` wrote. */
  state?: Uint8Array;
  /** What time it is at first; now when left out. */
  time?: Date;
  /** Time stands still until it is moved. */
  frozen?: boolean;
  /** Settings as in the config file, TOML: hosts, connectors, rate limits (docs/settings.md). */
  config?: string;
  /** Whether machines are measured (made-up numbers, real series). Takes a thread, so it is off when left out. */
  metrics?: boolean;
  /** Where requests to a machine's service go, for tests of what sleeps and wakes; nowhere when left out. */
  reach?: (machine: { id: string }, port: number) => { host: string; port: number } | undefined;
}

/** How a program ends; by itself and well when left out. */
export interface Crash {
  exit_code?: number;
  oom_killed?: boolean;
}

/** Time as the emulator has it: it passes by itself unless it is frozen, and can be moved forward. */
export interface EmulatorClock {
  /** Milliseconds since 1970. */
  now(): number;
  /**
   * Moves on by milliseconds, or by a length such as `90s`, `1h30m` or `2d`: whatever was to happen meanwhile
   * happens, in order. `advance(0)` lets happen what can happen now.
   */
  advance(by: number | string): Promise<void>;
  freeze(): void;
  flow(): void;
  readonly frozen: boolean;
}

/** A platform in memory: the whole API, no root, any system. */
export interface Emulator extends AsyncDisposable {
  readonly base_url: string;
  /** A full-access token. Another one after a state with another was loaded. */
  readonly token: string;
  /** Talks to it with that token. */
  readonly client: Client;
  readonly clock: EmulatorClock;
  readonly faults: Faults;
  /** Ends a machine's program, as a crash would; says whether it was running. */
  crash(machine_id: string, how?: Crash): boolean;
  /** As it was at its start, faults and time included; the token stays good. */
  reset(): Promise<void>;
  /** Everything that is kept, as a backup that `load` and `hangar restore` can read. Metrics and logs are not in it. */
  save(): Promise<Uint8Array>;
  /** Goes on from a saved state: machines that ran then run, at the time it was then if that is later. */
  load(state: Uint8Array): Promise<void>;
  close(): Promise<void>;
}

/** Starts an emulator. Several can run side by side. */
export async function startPlatform(options: EmulatorOptions = {}): Promise<Emulator> {
  const listener = await EmulatorListener.open(options.host ?? "127.0.0.1", options.port ?? 0);
  const emulator = new RunningEmulator(listener, options);
  try {
    await emulator.start();
  } catch (thrown) {
    await listener.close();
    throw thrown;
  }
  return emulator;
}

/** Whoever ends without closing leaves no folder behind. */
const OPEN = new Set<{ forget(): void }>();
process.on("exit", () => {
  for (const emulator of OPEN) emulator.forget();
});

/** The platform behind the listener; another one after each reset. */
interface Generation {
  dir: string;
  database: Database;
  world: SimWorld;
  platform: Platform;
}

class RunningEmulator implements Emulator {
  readonly #listener: EmulatorListener;
  readonly #options: EmulatorOptions;
  readonly #clock: MovingClock;
  readonly faults: FaultList;
  readonly clock: EmulatorClock;
  #now: Generation | undefined;
  #first: Uint8Array | undefined;
  /** What replaces the platform is done one after the other. */
  #replacing: Promise<void> = Promise.resolve();
  #closed = false;

  constructor(listener: EmulatorListener, options: EmulatorOptions) {
    const { time, frozen = false } = options;
    const clock = new MovingClock({ frozen, ...(time ? { start_ms: time.getTime() } : {}) });
    this.#listener = listener;
    this.#options = options;
    this.#clock = clock;
    this.faults = new FaultList(clock);
    this.clock = {
      now: () => clock.now(),
      advance: async (by) => await clock.advance(milliseconds(by)),
      freeze: () => clock.freeze(),
      flow: () => clock.flow(),
      get frozen() {
        return clock.frozen;
      },
    };
  }

  async start(): Promise<void> {
    this.#now = await this.#open(this.#options.state);
    this.#first = await this.save();
    OPEN.add(this);
  }

  get base_url(): string {
    return this.#generation.platform.base_url;
  }

  get token(): string {
    return readFileSync(this.#generation.platform.token_file, "utf8").trim();
  }

  get client(): Client {
    return new Client({ base_url: this.base_url, token: this.token });
  }

  crash(machine_id: string, { exit_code = 1, oom_killed = false }: Crash = {}): boolean {
    const exited_at = this.#clock.now();
    return this.#generation.world.crash(machine_id, { exit_code, oom_killed, signal: -1, exited_at });
  }

  async reset(): Promise<void> {
    this.faults.clear();
    if (this.#first) await this.load(this.#first);
  }

  async save(): Promise<Uint8Array> {
    const { dir, database } = this.#generation;
    const file = join(dir, "saved");
    const files = Object.fromEntries(BACKUP_FILES.map((name) => [name, readFileSync(join(dir, name), "utf8")]));
    try {
      await backup(database, file, files, this.#clock.now());
      return readFileSync(file);
    } finally {
      rmSync(file, { force: true });
    }
  }

  async load(state: Uint8Array): Promise<void> {
    const replaced = this.#replacing.then(() => this.#replace(state));
    this.#replacing = replaced.catch(() => {});
    await replaced;
  }

  async close(): Promise<void> {
    if (this.#closed) return;
    this.#closed = true;
    await this.#replacing;
    OPEN.delete(this);
    this.#listener.shut();
    await this.#now?.platform.close();
    await this.#listener.close();
    this.forget();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.close();
  }

  get #generation(): Generation {
    if (!this.#now || this.#closed) throw new Error("the emulator has been closed");
    return this.#now;
  }

  async #replace(state: Uint8Array): Promise<void> {
    const before = this.#generation;
    // Read before anything is given up: a state that cannot be loaded changes nothing.
    const loaded = await this.#restored(state);
    this.#listener.shut();
    await before.platform.close();
    rmSync(before.dir, { recursive: true, force: true });
    this.#setTime(loaded.saved_ms);
    this.#now = await this.#serve(loaded);
  }

  /** A clock that flows is never behind the real one; one that was set, or stands, goes where the state is. */
  #setTime(saved_ms: number): void {
    const real = this.#options.time || this.#clock.frozen ? 0 : systemClock.now();
    this.#clock.jump(Math.max(saved_ms, real) - this.#clock.now());
  }

  async #open(state: Uint8Array | undefined): Promise<Generation> {
    if (!state) return await this.#serve({ dir: folder(), database: inlineSqlite() });
    const loaded = await this.#restored(state);
    if (!this.#options.time) this.#setTime(loaded.saved_ms);
    return await this.#serve(loaded);
  }

  async #restored(state: Uint8Array): Promise<Pick<Generation, "dir" | "database"> & { saved_ms: number }> {
    const dir = folder();
    const database = inlineSqlite();
    const file = join(dir, "state");
    try {
      writeFileSync(file, state, { mode: 0o600 });
      const { header } = await restore(database, file, (files) => {
        for (const name of BACKUP_FILES) writeFileSync(join(dir, name), files[name] ?? "", { mode: 0o600 });
      });
      rmSync(file);
      return { dir, database, saved_ms: Date.parse(header.created_at) };
    } catch (thrown) {
      await database.close();
      rmSync(dir, { recursive: true, force: true });
      throw thrown;
    }
  }

  async #serve(kept: Pick<Generation, "dir" | "database">): Promise<Generation> {
    try {
      return await this.#run(kept);
    } catch (thrown) {
      rmSync(kept.dir, { recursive: true, force: true });
      throw thrown;
    }
  }

  async #run({ dir, database }: Pick<Generation, "dir" | "database">): Promise<Generation> {
    const { config, reach, metrics = false } = this.#options;
    const world = new SimWorld();
    const file = join(dir, "config.toml");
    if (config !== undefined) writeFileSync(file, config);
    const settings = readSettings([], {
      HANGAR_DATA_DIR: dir,
      HANGAR_DRIVER: "sim",
      HANGAR_LOG_LEVEL: "error",
      ...(config === undefined ? {} : { HANGAR_CONFIG: file }),
    });
    const platform = await startReal(settings, {
      clock: this.#clock,
      ...(reach ? { reach } : {}),
      emulated: {
        database,
        sim: { world, fault: this.faults.host },
        around: this.faults.around,
        sampled: metrics,
        listen: async (server) => {
          await this.#listener.lead(server);
          return this.#listener.address;
        },
      },
    });
    return { dir, database, world, platform };
  }

  forget(): void {
    if (this.#now) rmSync(this.#now.dir, { recursive: true, force: true });
  }
}

const folder = (): string => mkdtempSync(join(tmpdir(), "hangar-emulator-"));

function milliseconds(by: number | string): number {
  const ms = typeof by === "number" ? by : parseDuration(by);
  if (ms === undefined || !(ms >= 0)) throw new TypeError(`time is moved forward, by milliseconds or 1h30m, not ${by}`);
  return ms;
}
