import type { Problem } from "#core/errors.ts";

export interface CommandInput {
  /** The words of the `hangar` command. */
  words: readonly string[];
  token: string;
  onLine(line: string): void;
  signal: AbortSignal;
}

/** What the command prints as JSON: the result of a deploy, the lines of a dry run, or an error of the API. */
export interface CommandOutput {
  version?: number;
  lines?: string[];
  error?: string;
  status?: string;
  hint?: string;
  details?: Problem[];
}

export interface CommandResult {
  ok: boolean;
  result: CommandOutput;
}

/**
 * Runs the platform's own `hangar` command: a deploy is written once, there. It is a process of its own, talks to the
 * platform with the token it is given, and ends with the platform. Implemented in drivers/.
 */
export interface DeployCommand {
  run(input: CommandInput): Promise<CommandResult>;
}
