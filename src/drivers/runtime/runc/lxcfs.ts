/**
 * lxcfs: a FUSE file system whose files are those of /proc that speak of the whole box, with the numbers of the cgroup of
 * whoever reads them. One daemon per installation. It outlives us, and the next process of ours adopts it. Machines have
 * its files mounted over those of their /proc, and cannot read them while it is gone: so it is watched, a new one is
 * started when it died or hangs, and the machines that run get the files of the new one (`rebind.ts`).
 */
import { spawn } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import { lxcfsMissing, programFile } from "../../choice.ts";
import { detach } from "../../linux/calls.ts";
import { outsideUnit } from "./delegation.ts";
import type { Layout } from "./layout.ts";
import { kill, numberIn, startOf, workOf } from "./process-table.ts";

/** What machines see of it, as paths below its mount and below their root. */
export const LXCFS_FILES = [
  ...["cpuinfo", "diskstats", "loadavg", "meminfo", "stat", "swaps", "uptime"].map((name) => `/proc/${name}`),
  "/sys/devices/system/cpu/online",
] as const;

/** Small, and made by the daemon itself, so that whoever reads it knows that the daemon answers. */
export const LXCFS_PROBE = "/sys/devices/system/cpu/online";

const LOOK_MS = 1000;
/** Machines that are found without its files are looked for so many looks apart. */
const SWEEP = 30;
/**
 * It answers within a millisecond; one that takes longer, twice, and does nothing meanwhile hangs, and what reads its files
 * hangs with it. One that is at work is slow, as everything is on a busy host: machines would lose it while they start.
 */
const ANSWER_MS = 3000;
const SLOW_ANSWER_MS = 120_000;
const START_MS = 10_000;
/** How long one that could not be started is left alone. */
const RETRY_MS = 60_000;

export interface LxcfsParts {
  layout: Pick<Layout, "run" | "node_id">;
  clock: Clock;
  log: Log;
  /** Where the program is; looked for when left out. */
  program?: string | undefined;
}

export class Lxcfs {
  /** Where it is mounted. */
  readonly dir: string;
  readonly #parts: LxcfsParts;
  readonly #pid_file: string;
  readonly #closing = new AbortController();
  #starting: Promise<boolean> | undefined;
  #failed_at = Number.NEGATIVE_INFINITY;

  constructor(parts: LxcfsParts) {
    this.#parts = parts;
    this.dir = join(parts.layout.run, "lxcfs");
    this.#pid_file = join(parts.layout.run, "lxcfs.pid");
  }

  /** Whether machines can have its files now; starts it, or adopts one that an earlier process of ours left. */
  async ready(): Promise<boolean> {
    this.#starting ??= this.#start().finally(() => (this.#starting = undefined));
    return await this.#starting;
  }

  /** Until `close`: keeps it running. `rebind` gives its files to the machines that run and have none that answer. */
  async watch(rebind: () => Promise<void>): Promise<void> {
    const { signal } = this.#closing;
    const { clock, log } = this.#parts;
    let seen: number | undefined;
    for (let look = 0; !signal.aborted; look++) {
      try {
        const there = await this.ready();
        const pid = this.#pid();
        if (there && (pid !== seen || look % SWEEP === 0)) await rebind();
        seen = pid;
      } catch (error) {
        log.warn({ error }, "machines could not be given the files of lxcfs; this is tried again");
      }
      await clock.sleep(LOOK_MS, signal).catch(() => {});
    }
  }

  /** It stays, for the machines that run on. */
  close(): void {
    this.#closing.abort();
  }

  /** Nothing of it is left; there is no machine any more that reads its files. */
  async end(): Promise<void> {
    this.close();
    await this.#starting?.catch(() => {});
    await this.#clear();
  }

  async #start(): Promise<boolean> {
    if (await this.#answers()) return true;
    const { clock, log } = this.#parts;
    if (lxcfsMissing(this.#parts.program) || clock.monotonic() - this.#failed_at < RETRY_MS) return false;
    const before = numberIn(this.#pid_file);
    await this.#clear();
    try {
      await this.#spawn();
      if (before !== undefined) log.warn({ before, pid: this.#pid() }, "lxcfs had died or hung, and was started again");
      return true;
    } catch (thrown) {
      this.#failed_at = clock.monotonic();
      await this.#clear();
      log.warn({ problem: messageOf(thrown) }, "lxcfs could not be started; new machines see the host's memory");
      return false;
    }
  }

  async #spawn(): Promise<void> {
    const { clock } = this.#parts;
    mkdirSync(this.dir, { recursive: true, mode: 0o711 });
    const lxcfs = this.#parts.program ?? programFile("lxcfs") ?? "lxcfs";
    const words = [lxcfs, "--foreground", "--enable-loadavg", `--pidfile=${this.#pid_file}`, this.dir];
    const [program = lxcfs, ...args] = outsideUnit(this.#parts.layout.node_id, words);
    const child = spawn(program, args, {
      detached: true,
      stdio: "ignore",
      cwd: "/",
    });
    let problem: string | undefined;
    child.on("error", (error) => (problem = error.message));
    child.on("exit", (code, signal) => (problem = `it ended with ${code ?? signal}`));
    child.unref();
    const end = clock.monotonic() + START_MS;
    while (!(await this.#answers())) {
      if (problem !== undefined) throw new Error(problem);
      if (clock.monotonic() > end) throw new Error(`it does not answer after ${START_MS / 1000} s`);
      await clock.sleep(5);
    }
  }

  /** Read on another thread: a daemon that hangs must not take us with it. The thread is released when it is ended. */
  async #answers(): Promise<boolean> {
    if (this.#pid() === undefined || !this.#mounted()) return false;
    const { clock, layout } = this.#parts;
    const answered = readFile(join(this.dir, LXCFS_PROBE)).then(
      () => true,
      () => false,
    );
    const end = clock.monotonic() + SLOW_ANSWER_MS;
    for (let look = 0; ; look++) {
      const before = this.#work();
      const answer = await Promise.race([answered, clock.sleep(ANSWER_MS).then(() => undefined)]);
      if (answer !== undefined) return answer;
      const now = this.#work();
      const is_at_work = now !== undefined && (now.is_runnable || now.ticks !== before?.ticks);
      if (clock.monotonic() > end || (look > 0 && !is_at_work)) return false;
      // All threads may have been busy with a large disk. They take turns: when this is through, the read has begun.
      await stat(layout.run);
    }
  }

  #work(): ReturnType<typeof workOf> {
    const pid = this.#pid();
    return pid === undefined ? undefined : workOf(pid);
  }

  /** The daemon's process; undefined when it is gone, or its number is somebody else's by now. */
  #pid(): number | undefined {
    const pid = numberIn(this.#pid_file);
    if (pid === undefined || startOf(pid) === undefined) return undefined;
    try {
      return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").includes(this.dir) ? pid : undefined;
    } catch {
      return undefined;
    }
  }

  #mounted(): boolean {
    return readFileSync("/proc/self/mountinfo", "utf8").includes(` ${this.dir} `);
  }

  async #clear(): Promise<void> {
    const { clock } = this.#parts;
    const pid = this.#pid();
    if (pid !== undefined) kill(pid, "SIGKILL");
    while (pid !== undefined && startOf(pid) !== undefined) await clock.sleep(1);
    while (existsSync(this.#parts.layout.run) && this.#mounted()) detach(this.dir);
    rmSync(this.#pid_file, { force: true });
  }
}
