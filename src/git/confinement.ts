import type { ChildProcess } from "node:child_process";

/** A program that works on what a tenant sent. */
export interface ConfinedProgram {
  /** Debian's Git, or the command of this platform. */
  program: "git" | "hangar";
  args: readonly string[];
  /** The folder that it sees as `APP_DIR`: the only one that it may write to. */
  dir: string;
  /** Where it starts, inside. */
  cwd?: string;
  env?: Readonly<Record<string, string>>;
  /** A two-way channel as its file descriptor 3, which its own children inherit. */
  has_channel?: boolean;
  /** Whether it may connect to anything; Git moves its data through us and needs none. */
  has_network?: boolean;
  /** Ends it with all its children. */
  signal: AbortSignal;
}

export const APP_DIR = "/app";

/**
 * Runs programs that read hostile input: as a user without rights, in a root of its own where it sees the system's
 * programs and one folder. They end with this process. Implemented in drivers/.
 */
export interface Confinement {
  /** Why nothing can be run here, or undefined. */
  problem(): string | undefined;
  /** Gives a folder to the user that the programs run as. */
  adopt(dir: string): void;
  /** Its standard streams are pipes. */
  spawn(wanted: ConfinedProgram): ChildProcess;
}
