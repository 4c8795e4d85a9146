import type { Duplex, Readable, Writable } from "node:stream";
import type { EgressPolicy } from "#core/egress-policy.ts";
import type { ListenSocket } from "#core/listening.ts";
import type { CheckConfig } from "../config/config-schema.ts";
import type { LogLine } from "../logs/line.ts";
import type { LogQueue } from "../logs/queue.ts";
import type { LogFound, LogSearch } from "../logs/search.ts";
import type { Handle, ImageRef, MachineConfig } from "../types.ts";

export type { LogLine } from "../logs/line.ts";

/**
 * Runs machines: with runc on this host, or with `sim`, which runs nothing. Implemented in drivers/, tested by
 * `driver.suite.ts`.
 *
 * A *boot* is one run of a machine's processes, from cold start to exit; the caller names it, and the name is
 * kept through suspend and resume. A *handle* is what the driver needs to find a boot again after our own
 * process has restarted: JSON that we store and only the driver reads.
 *
 * A typical lifecycle: `start` (boot b1) … `suspend` … `resume` (still b1) … `stop` … `start` (boot b2) … `destroy`.
 *
 * All calls are idempotent, because after a crash the caller does not know whether the first one succeeded:
 * starting a running boot returns its handle, stopping an ended one returns its exit. An aborted call leaves
 * nothing half done: it is rolled back, or the next call of the same kind finishes it. Calls for one machine
 * never overlap; calls for different machines do.
 */
export interface RuntimeDriver {
  readonly name: string;
  /** The logs on this host, for readers that must not miss a line. */
  readonly log_queue: LogQueue;
  /** What this host supports, so that unsupported requests are refused early. */
  capabilities(): Capabilities;
  /**
   * Resolves an image name for an organization. Called before a machine is stored, so that a missing image is an error
   * of the request. Fails as `ImageSource.resolve` does.
   */
  resolve(image: string, org_id: string, signal: AbortSignal): Promise<ImageRef>;

  /**
   * Starts a cold boot. Resolves when the first process runs, not when checks pass. An earlier boot of the machine ends
   * first. `extend` is called while the image is pulled and once afterwards: the start timeout counts from the last
   * call.
   */
  start(launch: Launch, signal: AbortSignal, extend?: () => void): Promise<Started>;
  /**
   * Sends the stop signal, then SIGKILL after the timeout. Returns the exit, or undefined when nothing ran. Drops a
   * snapshot.
   */
  stop(ref: Ref, how: StopOptions, signal: AbortSignal): Promise<Exit | undefined>;
  /**
   * Keeps the memory on disk (`snapshot`) or in RAM (`freeze`); nothing runs afterwards, and no exit is reported. Fails
   * with `SuspendRefused`, leaving the machine running, when it cannot.
   */
  suspend(ref: Ref, signal: AbortSignal): Promise<Suspended>;
  /** Resumes a suspended boot. Returns `Lost` when that is impossible; then nothing of it remains. */
  resume(launch: Launch, handle: Handle, signal: AbortSignal): Promise<Started | Lost>;
  /** Removes everything of the machine, running or not. */
  destroy(id: string, signal: AbortSignal): Promise<void>;

  signal(ref: Ref, signal: string): Promise<void>;
  exec(ref: Ref, command: Exec, signal: AbortSignal): Promise<ExecResult>;
  /** Runs a program on a terminal. Resolves when it runs, or is about to print why it cannot. */
  terminal(ref: Ref, wanted: TerminalOptions, signal: AbortSignal): Promise<Terminal>;
  /** Runs a program with separate streams. Resolves when it runs, or is about to say why it cannot. */
  process(ref: Ref, wanted: ProgramOptions, signal: AbortSignal): Promise<MachineProcess>;
  /**
   * Connects to a TCP port of a running machine. Fails with `port_unreachable` when nothing accepts connections there. The
   * stream is destroyed when the machine stops or is suspended; either side may end its own direction first.
   */
  connect(ref: Ref, port: number, signal: AbortSignal): Promise<Duplex>;
  /** Whether a command, program, terminal or connection of a caller is open in a machine of this host. */
  inUse(id: string): boolean;
  ps(ref: Ref): Promise<Process[]>;
  /** Listening sockets in the machine's network namespace; undefined where they cannot be read. */
  listening(ref: Ref): Promise<ListenSocket[] | undefined>;
  /**
   * Log lines, oldest first: the newest ones, or those after an earlier page. `host_id` is the machine's, from those who
   * have it; otherwise it is looked up.
   */
  logs(id: string, from: LogsFrom, host_id?: string): Promise<LogPage>;
  /** Searches the logs of machines of one host, which is this one when `host_id` is absent; until `signal`. */
  searchLogs(search: LogSearch, host_id?: string, signal?: AbortSignal): Promise<LogFound>;
  /** Calls `wake` when there may be more lines; returns the unsubscribe function. */
  watchLogs(id: string, wake: () => void): () => void;
  probe(ref: Ref, check: CheckConfig, signal: AbortSignal): Promise<{ passing: boolean; output: string }>;

  /** Changes the egress policy of a running machine; at a start or resume the launch contains it. */
  setEgress(id: string, egress: EgressPolicy): Promise<void>;
  /** Opens the addresses of an allowed DNS name to the machine for this long. */
  admitName(id: string, name: string, found: readonly ResolvedAddress[]): Promise<void>;

  /**
   * Subscribes to boots that exit by themselves. A notice may be late, duplicated or, after a crash of ours, missing:
   * see `recover`.
   */
  onExit(listener: (notice: ExitNotice) => void): () => void;
  /**
   * Reports the state of each known boot, and every other boot found. Called after a restart, and regularly in case an
   * exit notice was lost.
   */
  recover(known: readonly Ref[]): Promise<Observed[]>;
  close(): Promise<void>;
}

/** `snapshot`: the memory is on disk and survives a restart of the host. `freeze`: it stays in the host's memory. */
export type SuspendKind = "snapshot" | "freeze";

export interface Capabilities {
  /** The better kind that this host supports. */
  suspend: SuspendKind | false;
  /** Why snapshots are not supported. */
  suspend_reason?: string;
  /** Why `init.swap_size_mb` gives no swap on this host; absent when it does. */
  swap_problem?: string;
  /** Why no SQLite node runs in machines with `sqlite`; absent when it does. */
  sqlite_problem?: string;
}

export interface Ref {
  id: string;
  boot: string;
  handle: Handle | null;
}

/** Everything that a boot needs. */
export interface Launch {
  id: string;
  boot: string;
  name: string;
  app_name: string;
  org_id: string;
  region: string;
  instance_id: string;
  private_ip: string;
  image_ref: ImageRef;
  config: MachineConfig;
  /** The app's secrets, by name. */
  secrets: Record<string, string>;
  /** Egress policy, in force before the first process runs. */
  egress: EgressPolicy;
  /** Whether the root file system is kept: yes, no, or only if the same version wrote it. */
  keep_rootfs: boolean | "version";
  /** It runs the steps of an image build: it may mount and make namespaces inside its own user namespace. */
  sandbox?: "build";
}

export interface ResolvedAddress {
  address: string;
  ttl_s: number;
}

export interface Started {
  handle: Handle;
  /** Address where IPv4-only programs are reached from the host, if the machine has one. */
  private_ipv4?: string;
  /** The resolved image. */
  image_ref?: ImageRef;
}

export interface Suspended {
  handle: Handle;
  kind: SuspendKind;
  /** Why the memory was frozen instead of written to disk. */
  reason?: string;
}

/** A suspended machine that cannot be resumed, and why. */
export interface Lost {
  lost: string;
}

export interface StopOptions {
  signal: string;
  timeout_ms: number;
}

export interface Exit {
  exit_code: number;
  /** -1 when there was none. */
  signal: number;
  oom_killed: boolean;
  /** The process killed by the OOM killer, and whether the machine's or the host's memory was full. */
  oom?: { process: string; memory: "machine" | "host" };
  exited_at: number;
}

export interface ExitNotice extends Exit {
  id: string;
  boot: string;
}

export interface Observed {
  id: string;
  boot: string;
  state: "running" | "frozen" | "gone";
  /** Of a running boot: see `Started`. */
  private_ipv4?: string;
  /** The exit, if known. */
  exit?: Exit;
}

export interface Exec {
  command: readonly string[];
  stdin?: string;
  timeout_ms: number;
}

export interface ExecResult {
  exit_code: number;
  exit_signal?: number;
  stdout: string;
  stderr: string;
}

export interface TerminalSize {
  rows: number;
  cols: number;
}

export interface ProgramOptions {
  command: readonly string[];
  /** Variables beside those of the machine's first program, which they replace. */
  env?: Readonly<Record<string, string>>;
  /** The folder to start in, which must exist; by default that of the machine's first program. */
  folder?: string;
}

export interface TerminalOptions extends TerminalSize, ProgramOptions {
  /** The variable TERM. */
  term: string;
}

/** A program on a terminal. The opener always calls `hangUp` at the end. */
export interface Terminal {
  /**
   * Input and output of the terminal, with back-pressure in both directions. Output ends when the program has exited
   * and all of it was read.
   */
  readonly stream: Duplex;
  resize(size: TerminalSize): void;
  /** Sends a signal to the foreground process group. */
  signal(name: string): void;
  /** How the program ended; never rejects. Also resolves when the machine stops or is suspended. */
  readonly ended: Promise<TerminalEnd>;
  /** Closes the terminal: the program gets SIGHUP, and is killed if it ignores it. Idempotent. */
  hangUp(): void;
}

export interface TerminalEnd {
  exit_code: number;
  exit_signal?: number;
}

/** A program with separate streams. The opener always calls `kill` at the end. */
export interface MachineProcess {
  readonly stdin: Writable;
  /** Both end when nobody has them open for writing: after the program, and what it has left running. */
  readonly stdout: Readable;
  readonly stderr: Readable;
  /** Sends a signal to the program's process group. */
  signal(name: string): void;
  /** How the program ended; never rejects. Also resolves when the machine stops or is suspended. */
  readonly ended: Promise<TerminalEnd>;
  /** Ends the program if it runs, and closes the streams. Idempotent. */
  kill(): void;
}

export interface Process {
  pid: number;
  stime: number;
  rtime: number;
  command: string;
  directory: string;
  cpu: number;
  rss: number;
  listen_sockets: ListenSocket[];
}

/** The newest lines from `since` up to, not including, `until` (milliseconds); a cursor comes from the previous page. */
export type LogsFrom = { tail: number; since?: number; until?: number } | { cursor: string };
/** The cursor of the first line that is kept. */
export const LOG_BEGIN = "";

export interface LogPage {
  lines: LogLine[];
  /** Start of the next page. Lines deleted meanwhile are skipped. */
  cursor: string;
}

/** The machine cannot be suspended and keeps running. The message says why. */
export class SuspendRefused extends Error {
  override readonly name = "SuspendRefused";
}
