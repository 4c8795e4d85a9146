import type { Duplex } from "node:stream";
import type { EgressPolicy } from "#core/egress-policy.ts";
import type { ListenSocket } from "#core/listening.ts";
import type { CheckConfig } from "../config/config-schema.ts";
import type { Handle, ImageRef, MachineConfig } from "../types.ts";

/**
 * What runs machines: runc on this box, or `sim`, which runs nothing. Implemented in drivers/, each passes
 * `driver.suite.ts`.
 *
 * Terms. A *boot* is one life of a machine's processes, from cold start to exit; the caller names it, and the
 * name stays through suspend and resume. A *handle* is what the driver needs to find a boot again after our
 * own process has restarted: plain JSON, we keep it, and only the driver reads it.
 *
 * A typical life: `start` (boot b1) … `suspend` … `resume` (still b1) … `stop` … `start` (boot b2) … `destroy`.
 *
 * Every call may be repeated, because after a crash the caller does not know whether the first one happened:
 * starting a boot that runs answers its handle, stopping one that ended answers how it ended. A call that is
 * aborted leaves nothing half done: what it began is taken back, or the next call of the same kind finishes
 * it. Calls for one machine never overlap; calls for different machines do.
 */
export interface RuntimeDriver {
  readonly name: string;
  /** What this host can do. A caller is refused early, not halfway. */
  capabilities(): Capabilities;
  /**
   * What an image's name stands for now, for this organization: asked before a machine is written down, so that an
   * image that cannot be had is an error of whoever names it. Fails as `ImageSource.resolve` does.
   */
  resolve(image: string, org_id: string, signal: AbortSignal): Promise<ImageRef>;

  /**
   * Boots cold. Resolves when the first process runs, not when checks pass. Another boot of the machine that is left over
   * ends first. While its image is on its way `extend` is called now and then, and once when it is there: the time that
   * a start may take counts from the last call.
   */
  start(launch: Launch, signal: AbortSignal, extend?: () => void): Promise<Started>;
  /** The stop signal, then SIGKILL after the timeout. Resolves with how it ended; undefined when nothing ran. A snapshot is dropped. */
  stop(ref: Ref, how: StopOptions, signal: AbortSignal): Promise<Exit | undefined>;
  /**
   * Keeps the memory, on the disk (`snapshot`) or where it is (`freeze`); nothing runs afterwards, and no exit is
   * reported. Fails with `SuspendRefused`, the machine running on, when it cannot.
   */
  suspend(ref: Ref, signal: AbortSignal): Promise<Suspended>;
  /** Goes on where it was suspended. Lost when that cannot be; then nothing runs and nothing is left of it. */
  resume(launch: Launch, handle: Handle, signal: AbortSignal): Promise<Started | Lost>;
  /** Removes whatever there is of the machine, running or not. */
  destroy(id: string, signal: AbortSignal): Promise<void>;

  signal(ref: Ref, signal: string): Promise<void>;
  exec(ref: Ref, command: Exec, signal: AbortSignal): Promise<ExecResult>;
  /** Runs a program on a terminal. Resolves when it runs, or is about to say on its screen why it cannot. */
  terminal(ref: Ref, wanted: TerminalOptions, signal: AbortSignal): Promise<Terminal>;
  ps(ref: Ref): Promise<Process[]>;
  /** What its programs listen on, read from its network; undefined where that cannot be known. */
  listening(ref: Ref): Promise<ListenSocket[] | undefined>;
  /** Lines a machine wrote, oldest first: the newest ones, or what came after a page that was read before. */
  logs(id: string, from: LogsFrom): Promise<LogPage>;
  /** Calls `wake` when there may be more; answers what ends that. */
  watchLogs(id: string, wake: () => void): () => void;
  probe(ref: Ref, check: CheckConfig, signal: AbortSignal): Promise<{ passing: boolean; output: string }>;

  /** What a running machine may reach outside its network from now on; at a start or resume the launch says it. */
  setEgress(id: string, egress: EgressPolicy): Promise<void>;
  /** A DNS name that the machine's policy lists stands for these addresses: they are open to it for so long. */
  admitName(id: string, name: string, found: readonly ResolvedAddress[]): Promise<void>;

  /** Word of every boot that ends by itself. May come late, twice, or, after a crash of ours, never: see `recover`. */
  onExit(listener: (notice: ExitNotice) => void): () => void;
  /**
   * What really is there: an answer for each boot that is thought to be, and every other that is found. Asked
   * after a restart, and now and then in case word of an exit was lost.
   */
  recover(known: readonly Ref[]): Promise<Observed[]>;
  close(): Promise<void>;
}

/** `snapshot`: the memory is on the disk, and outlives a restart of the host. `freeze`: it stays in the host's memory. */
export type SuspendKind = "snapshot" | "freeze";

export interface Capabilities {
  /** The better of the two that this host has. */
  suspend: SuspendKind | false;
  /** Why there are no snapshots. */
  suspend_reason?: string;
  /** Why `init.swap_size_mb` gives machines no swap on this host; left out when it does. */
  swap_problem?: string;
}

export interface Ref {
  id: string;
  boot: string;
  handle: Handle | null;
}

/** Everything a boot needs to know. */
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
  /** What it may reach outside its network: in force before its program runs. */
  egress: EgressPolicy;
  /** Whether the machine finds its root file system as it left it: yes, no, or only if it was this version that left it. */
  keep_rootfs: boolean | "version";
}

export interface ResolvedAddress {
  address: string;
  ttl_s: number;
}

export interface Started {
  handle: Handle;
  /** Where programs that listen on IPv4 alone are reached from its host, when the machine has such an address. */
  private_ipv4?: string;
  /** What the image turned out to be. */
  image_ref?: ImageRef;
}

export interface Suspended {
  handle: Handle;
  kind: SuspendKind;
  /** Why it is frozen and not written down. */
  reason?: string;
}

/** A suspended machine that cannot go on, and why. */
export interface Lost {
  lost: string;
}

export interface StopOptions {
  signal: string;
  timeout_ms: number;
}

export interface Exit {
  exit_code: number;
  /** -1 when it was none. */
  signal: number;
  oom_killed: boolean;
  /** What the kernel killed, and whether the machine's memory was full or all of the host's. */
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
  /** Of one that runs: see `Started`. */
  private_ipv4?: string;
  /** How it ended, as far as that is known. */
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

export interface TerminalOptions extends TerminalSize {
  command: readonly string[];
  /** What the terminal is called, for programs that draw: the variable TERM. */
  term: string;
}

/** A program that runs on a terminal. Whoever opened it hangs up at the end, in any case. */
export interface Terminal {
  /**
   * Keys in, screen out. While nobody reads, the program that draws stands still; while it reads nothing, writing waits.
   * The screen ends when the program has ended and all that it drew was read.
   */
  readonly stream: Duplex;
  resize(size: TerminalSize): void;
  /** To whatever has the terminal now: the program itself, or what it runs in the foreground. */
  signal(name: string): void;
  /** How the program ended; never rejects. Also when the machine was stopped, or went to sleep, under it. */
  readonly ended: Promise<TerminalEnd>;
  /** The line is cut: the program is told (SIGHUP), and what does not heed that is ended. May be repeated. */
  hangUp(): void;
}

export interface TerminalEnd {
  exit_code: number;
  exit_signal?: number;
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

/** `since` is in milliseconds; a cursor is what the page before answered. */
export type LogsFrom = { tail: number; since?: number } | { cursor: string };

export interface LogPage {
  lines: LogLine[];
  /** Where the next page begins. Lines that were forgotten meanwhile are left out. */
  cursor: string;
}

export interface LogLine {
  timestamp: number;
  stream: "stdout" | "stderr";
  message: string;
}

/** The machine cannot be suspended as it is; it runs on. The message says why. */
export class SuspendRefused extends Error {
  override readonly name = "SuspendRefused";
}
