import { createHash } from "node:crypto";
import { type Duplex, PassThrough } from "node:stream";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { compileFilter } from "#machines/logs/filter.ts";
import type { LogQueue } from "#machines/logs/queue.ts";
import { FirstLines, inOrder, type LogFound, type LogSearch, nanosOfMs } from "#machines/logs/search.ts";
import {
  type Capabilities,
  type Exit,
  type ExitNotice,
  type Launch,
  type LogPage,
  type LogsFrom,
  type Lost,
  type MachineProcess,
  type Observed,
  type ProgramOptions,
  type Ref,
  type RuntimeDriver,
  type Started,
  type Suspended,
  SuspendRefused,
  type Terminal,
  type TerminalOptions,
} from "#machines/runtime/driver.ts";
import { parseImage } from "#machines/runtime/images.ts";
import type { LocalApi } from "#machines/runtime/local-api.ts";
import { OpenStreams } from "#machines/runtime/open-streams.ts";
import type { ImageRef } from "#machines/types.ts";
import { SimLogQueue } from "./log-queue.ts";
import { SimPrograms } from "./programs.ts";
import { SimTerminals } from "./terminal.ts";
import { type SimBoot, type SimKnobs, SimWorld } from "./world.ts";

export interface SimOptions {
  clock: Clock;
  /** The simulated host. It outlives a driver, as a real one outlives our process. */
  world?: SimWorld;
  /** Adopts boots from their handles, for a world that is empty at every start. */
  adopt?: boolean;
  /** The machine API sockets of simulated machines, if wanted. */
  local_api?: LocalApi;
  /** Where machines keep their files; temporary ones without it. */
  files_dir?: string;
  /** Called before every call; may delay it or throw. */
  fault?: (call: keyof RuntimeDriver, id: string, signal?: AbortSignal) => Promise<void>;
}

/**
 * Runs nothing and behaves as if it did: the whole API without root, on any box, for tests and for trying
 * things out. A machine's environment may say how it behaves:
 *
 *   SIM_PULL_MS=60000     its image takes that long to come, before it boots
 *   SIM_BOOT_MS=200       takes that long to boot        SIM_FAIL=text       does not boot, and says so
 *   SIM_RUN_MS=5000       ends by itself after that      SIM_EXIT_CODE=1     … with this code
 *   SIM_STOP_MS=100       takes that long to stop        SIM_SUSPEND=text    refuses to be suspended
 *   SIM_CHECK=text        fails its checks               SIM_FREEZE=text     is suspended in memory, for this reason
 *   SIM_LISTEN=80,5432    accepts connections there, and sends back what comes
 *   SIM_LOCAL_API=1       has its socket, in <data dir>/run/api/<id>
 */
export function simDriver(options: SimOptions): RuntimeDriver {
  return new SimDriver(options);
}

class SimDriver implements RuntimeDriver {
  readonly name = "sim";
  readonly log_queue: LogQueue;
  readonly #clock: Clock;
  readonly #world: SimWorld;
  #adopt: boolean;
  readonly #fault: NonNullable<SimOptions["fault"]>;
  readonly #local_api: LocalApi | undefined;
  readonly #terminals = new SimTerminals();
  readonly #programs: SimPrograms;
  readonly #connections = new OpenStreams();
  readonly #closing = new AbortController();
  readonly #listeners = new Set<(notice: ExitNotice) => void>();
  readonly #ends: () => void;

  constructor({ clock, world, adopt, fault, local_api, files_dir }: SimOptions) {
    this.#programs = new SimPrograms(files_dir);
    this.#local_api = local_api;
    this.#clock = clock;
    this.#world = world ?? new SimWorld();
    this.log_queue = new SimLogQueue(this.#world);
    this.#adopt = adopt ?? false;
    this.#fault = fault ?? (async () => {});
    this.#ends = this.#world.listen((notice) => {
      this.#endSessions(notice.id);
      for (const listener of this.#listeners) listener(notice);
    });
  }

  capabilities(): Capabilities {
    return { suspend: "snapshot", sqlite_problem: "simulated machines run no program" };
  }

  /** Any name resolves, always to the same digest. */
  async resolve(image: string): Promise<ImageRef> {
    const { digest = `sha256:${createHash("sha256").update(image).digest("hex")}`, ...named } = parseImage(image);
    return { ...named, digest };
  }

  async start(launch: Launch, signal: AbortSignal, extend?: () => void): Promise<Started> {
    await this.#begin("start", launch.id, signal);
    const before = this.#world.boots.get(launch.id);
    if (before?.boot === launch.boot && before.state === "running") return { handle: handleOf(before) };
    const knobs = knobsOf(launch);
    for (let left = knobs.pull_ms; left > 0; left -= PULL_BEAT_MS) {
      await this.#clock.sleep(Math.min(left, PULL_BEAT_MS), signal);
      extend?.();
    }
    if (knobs.boot_ms > 0) await this.#clock.sleep(knobs.boot_ms, signal);
    if (knobs.fail) throw new Error(knobs.fail);
    if (launch.config.env?.["SIM_LOCAL_API"] === "1") await this.#local_api?.open(launch.id);
    const boot: SimBoot = {
      id: launch.id,
      boot: launch.boot,
      state: "running",
      started_at: this.#clock.now(),
      knobs,
      log: before?.log ?? [],
    };
    this.#world.boots.set(launch.id, boot);
    this.#say(boot, `${before ? "started again" : "started"} ${launch.config.image}`);
    if (launch.config.sqlite) this.#say(boot, "simulated: no SQLite node runs here, nothing is replicated");
    this.#runOut(boot);
    return { handle: handleOf(boot) };
  }

  async stop(
    { id, boot }: Ref,
    how: { signal: string; timeout_ms: number },
    signal: AbortSignal,
  ): Promise<Exit | undefined> {
    await this.#begin("stop", id, signal);
    this.#endSessions(id);
    const found = this.#world.boots.get(id);
    if (!found || found.boot !== boot) return undefined;
    if (found.state === "exited") return found.exit;
    if (found.state === "frozen") {
      found.state = "exited";
      return undefined;
    }
    // A machine that exceeds its stop timeout is killed.
    const killed = found.knobs.stop_ms > how.timeout_ms || how.signal === "SIGKILL";
    const wait = Math.min(found.knobs.stop_ms, how.timeout_ms);
    if (wait > 0) await this.#clock.sleep(wait, signal);
    this.#say(found, killed ? "killed" : `stopped by ${how.signal}`);
    const exit = {
      exit_code: killed ? 137 : 0,
      signal: killed ? 9 : -1,
      oom_killed: false,
      exited_at: this.#clock.now(),
    };
    Object.assign(found, { state: "exited", exit });
    return exit;
  }

  async suspend({ id, boot }: Ref, signal: AbortSignal): Promise<Suspended> {
    await this.#begin("suspend", id, signal);
    this.#endSessions(id);
    const found = this.#world.boots.get(id);
    if (found?.boot !== boot || found.state === "exited") throw new SuspendRefused("nothing runs");
    if (found.knobs.suspend) throw new SuspendRefused(found.knobs.suspend);
    found.state = "frozen";
    this.#say(found, "suspended");
    const { freeze } = found.knobs;
    return { handle: handleOf(found), ...(freeze ? { kind: "freeze", reason: freeze } : { kind: "snapshot" }) };
  }

  async resume(launch: Launch, _handle: unknown, signal: AbortSignal): Promise<Started | Lost> {
    await this.#begin("resume", launch.id, signal);
    const found = this.#world.boots.get(launch.id);
    if (found?.boot !== launch.boot || found.state === "exited") return { lost: "there is no snapshot of it" };
    if (found.lost) return { lost: found.lost };
    found.state = "running";
    this.#say(found, "resumed");
    this.#runOut(found);
    return { handle: handleOf(found) };
  }

  async destroy(id: string, signal: AbortSignal): Promise<void> {
    await this.#begin("destroy", id, signal);
    this.#endSessions(id);
    this.#programs.remove(id);
    this.#world.boots.delete(id);
    await this.#local_api?.remove(id);
  }

  async signal(ref: Ref, name: string): Promise<void> {
    await this.#begin("signal", ref.id);
    const found = this.#running(ref);
    if (name === "SIGKILL")
      this.#world.exit(found, { exit_code: 137, signal: 9, oom_killed: false, exited_at: this.#clock.now() });
    else this.#say(found, `got ${name}`);
  }

  async exec(ref: Ref, { command, stdin }: { command: readonly string[]; stdin?: string }) {
    await this.#begin("exec", ref.id);
    this.#running(ref);
    const [name = "", ...rest] = command;
    // Enough to check that arguments and input arrive unchanged.
    if (name === "echo") return { exit_code: 0, stdout: `${rest.join(" ")}\n`, stderr: "" };
    if (name === "cat" && rest.length === 0) return { exit_code: 0, stdout: stdin ?? "", stderr: "" };
    if (name === "false") return { exit_code: 1, stdout: "", stderr: "" };
    return { exit_code: 0, stdout: "", stderr: `sim runs nothing: ${command.join(" ")}\n` };
  }

  async terminal(ref: Ref, wanted: TerminalOptions, signal: AbortSignal): Promise<Terminal> {
    await this.#begin("terminal", ref.id, signal);
    this.#running(ref);
    return this.#terminals.open(ref.id, wanted, (command) => this.exec(ref, { command }), this.#clock);
  }

  async process(ref: Ref, wanted: ProgramOptions, signal: AbortSignal): Promise<MachineProcess> {
    await this.#begin("process", ref.id, signal);
    this.#running(ref);
    return this.#programs.open(ref.id, wanted, this.#clock);
  }

  /** What accepts connections sends back what comes: enough to see that bytes arrive. */
  async connect(ref: Ref, port: number, signal: AbortSignal): Promise<Duplex> {
    await this.#begin("connect", ref.id, signal);
    if (!this.#running(ref).knobs.listen?.includes(port))
      fail("port_unreachable", `machine ${ref.id}: nothing listens on port ${port}`);
    return this.#connections.add(ref.id, new PassThrough());
  }

  inUse(id: string): boolean {
    return [this.#terminals, this.#programs, this.#connections].some((open) => open.has(id));
  }

  async ps(ref: Ref) {
    await this.#begin("ps", ref.id);
    const { started_at, knobs } = this.#running(ref);
    const listen_sockets = (knobs.listen ?? []).map((port) => ({ proto: "tcp", address: `0.0.0.0:${port}` }));
    const rtime = Math.round((this.#clock.now() - started_at) / 1000);
    return [{ pid: 1, stime: 0, rtime, command: "/sim/init", directory: "/", cpu: 0, rss: 0, listen_sockets }];
  }

  /** Nothing listens, and that is not a warning. */
  async listening(ref: Ref): Promise<undefined> {
    await this.#begin("listening", ref.id);
    this.#running(ref);
  }

  async logs(id: string, from: LogsFrom): Promise<LogPage> {
    const log = this.#world.boots.get(id)?.log ?? [];
    const after = "cursor" in from ? Number(from.cursor) : -1;
    const { since = 0, until = Infinity } = "cursor" in from ? {} : from;
    const wanted = log.filter(({ seq, timestamp }) => seq > after && timestamp >= since && timestamp < until);
    const shown = "cursor" in from ? wanted : wanted.slice(-from.tail);
    const lines = shown.map(({ timestamp, message }) => ({ timestamp, message, stream: "stdout" as const }));
    return { lines, cursor: String(log.at(-1)?.seq ?? after) };
  }

  async searchLogs(search: LogSearch): Promise<LogFound> {
    const { ids, filter, since = 0, until = Infinity, order, limit, after } = search;
    const first = new FirstLines(search);
    const { matches } = compileFilter(filter);
    for (const id of ids) {
      for (const { seq, timestamp, message } of this.#world.boots.get(id)?.log ?? []) {
        const key = { at: nanosOfMs(timestamp), id, first: nanosOfMs(0), offset: seq };
        const is_wanted = timestamp >= since && timestamp < until && (!after || inOrder(order)(after, key) < 0);
        if (is_wanted && matches(message)) first.add({ timestamp, stream: "stdout", message, key });
      }
    }
    const lines = first.take();
    const last = lines.length === limit ? lines.at(-1)?.key : undefined;
    const ends = ids.map((id): [string, string] => [id, String(this.#world.boots.get(id)?.log.at(-1)?.seq ?? -1)]);
    return { lines, ...(last ? { next: last } : {}), ends: Object.fromEntries(ends), damaged: [] };
  }

  watchLogs(id: string, wake: () => void): () => void {
    return this.#world.watchLogs(id, wake);
  }

  /** Simulated machines send nothing. */
  async setEgress(): Promise<void> {}

  async admitName(): Promise<void> {}

  async probe(ref: Ref, _check: unknown, signal: AbortSignal): Promise<{ passing: boolean; output: string }> {
    await this.#begin("probe", ref.id, signal);
    const found = this.#world.boots.get(ref.id);
    if (found?.boot !== ref.boot || found.state !== "running") return { passing: false, output: "nothing runs" };
    return found.knobs.check
      ? { passing: false, output: found.knobs.check }
      : { passing: true, output: "as good as real" };
  }

  onExit(listener: (notice: ExitNotice) => void): () => void {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  }

  async recover(known: readonly Ref[]): Promise<Observed[]> {
    await this.#begin("recover", "");
    if (this.#adopt) for (const ref of known) this.#takeBack(ref);
    // Once: later, a missing boot has ended.
    this.#adopt = false;
    const queried = new Set(known.map(({ id, boot }) => `${id}/${boot}`));
    const found: Observed[] = known.map(({ id, boot }) => {
      const there = this.#world.boots.get(id);
      if (there?.boot !== boot) return { id, boot, state: "gone" };
      if (there.state === "exited") return { id, boot, state: "gone", ...(there.exit ? { exit: there.exit } : {}) };
      return { id, boot, state: there.state };
    });
    for (const { id, boot, state } of this.#world.boots.values()) {
      if (state !== "exited" && !queried.has(`${id}/${boot}`)) found.push({ id, boot, state });
    }
    return found;
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#terminals.close();
    this.#programs.close();
    this.#connections.close();
    this.#ends();
  }

  #endSessions(id: string): void {
    this.#terminals.end(id);
    this.#programs.end(id);
    this.#connections.end(id);
  }

  async #begin(call: keyof RuntimeDriver, id: string, signal?: AbortSignal): Promise<void> {
    signal?.throwIfAborted();
    await this.#fault(call, id, signal);
    signal?.throwIfAborted();
  }

  #running({ id, boot }: Ref): SimBoot {
    const found = this.#world.boots.get(id);
    if (found?.boot !== boot || found.state !== "running") fail("wrong_state", `machine ${id} does not run`);
    return found;
  }

  /** After our restart the world is empty; boots are restored from their handles. */
  #takeBack({ id, boot, handle }: Ref): void {
    if (!handle || this.#world.boots.has(id)) return;
    // The handle's format is that of `handleOf`.
    const { state, started_at, knobs } = handle as unknown as SimBoot;
    const back: SimBoot = { id, boot, state, started_at, knobs, log: [] };
    this.#world.boots.set(id, back);
    if (state === "running") this.#runOut(back);
  }

  /** A machine with a run time ends after it, counted from its start. */
  #runOut(boot: SimBoot): void {
    const { run_ms, exit_code } = boot.knobs;
    if (run_ms === undefined) return;
    const left = boot.started_at + run_ms - this.#clock.now();
    const end = (): void => {
      if (this.#world.boots.get(boot.id) !== boot || boot.state !== "running") return;
      this.#world.exit(boot, { exit_code, signal: -1, oom_killed: false, exited_at: this.#clock.now() });
    };
    this.#clock.sleep(Math.max(0, left), this.#closing.signal).then(end, () => {});
  }

  #say(boot: SimBoot, message: string): void {
    boot.log.push({ seq: (boot.log.at(-1)?.seq ?? 0) + 1, timestamp: this.#clock.now(), message });
    if (boot.log.length > LOG_LINES) boot.log.shift();
    this.#world.wrote(boot.id);
  }
}

/** Maximum number of log lines per machine. */
const LOG_LINES = 100;

const handleOf = ({ state, started_at, knobs }: SimBoot): Record<string, unknown> => ({ state, started_at, knobs });

/** Interval at which a start reports that its image is still being pulled. */
const PULL_BEAT_MS = 10_000;

function knobsOf({ config }: Launch): SimKnobs {
  const env = config.env ?? {};
  const number = (name: string): number => Math.max(0, Number(env[name]) || 0);
  return {
    pull_ms: number("SIM_PULL_MS"),
    boot_ms: number("SIM_BOOT_MS"),
    stop_ms: number("SIM_STOP_MS"),
    exit_code: number("SIM_EXIT_CODE"),
    ...(env["SIM_RUN_MS"] === undefined ? {} : { run_ms: number("SIM_RUN_MS") }),
    ...(env["SIM_FAIL"] === undefined ? {} : { fail: env["SIM_FAIL"] || "does not boot" }),
    ...(env["SIM_SUSPEND"] === undefined ? {} : { suspend: env["SIM_SUSPEND"] || "refuses" }),
    ...(env["SIM_FREEZE"] === undefined ? {} : { freeze: env["SIM_FREEZE"] || "set so" }),
    ...(env["SIM_LISTEN"] === undefined ? {} : { listen: env["SIM_LISTEN"].split(",").map(Number) }),
    ...(env["SIM_CHECK"] === undefined ? {} : { check: env["SIM_CHECK"] || "does not answer" }),
  };
}
