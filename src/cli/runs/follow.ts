/** One-off runs on the command line: their result for display, and their streamed output. */
import { setTimeout } from "node:timers/promises";
import type { Api } from "#client/api.ts";
import { type Client, ClientError } from "#client/client.ts";
import { terminalText } from "../terminal-text.ts";

export type Run = Api["GET /v1/apps/:app_name/runs/:run_id"]["answer"];

const LOOK_MS = 100;
const FAILURE = 1;

/** `exit code 3`, `signal 9`, `out of memory`; empty while it runs. */
export function howItEnded({ state, exit_code, signal, oom_killed, error }: Run): string {
  if (state === "running") return "";
  if (oom_killed) return "out of memory";
  if (signal !== null) return `signal ${signal}`;
  return exit_code === null ? (error ?? "") : `exit code ${exit_code}`;
}

/** The exit code of the command for a run. */
export const exitOf = ({ exit_code, state }: Run): number => exit_code ?? (state === "complete" ? 0 : FAILURE);

/** The run of a machine that was just started; waits until it is recorded. */
export async function runOf(client: Client, app_name: string, machine_id: string): Promise<Run> {
  for (;;) {
    const { runs } = await client.call("GET /v1/apps/:app_name/runs", {
      params: { app_name },
      query: { machine_id, limit: 1 },
    });
    if (runs[0]) return runs[0];
    await setTimeout(LOOK_MS);
  }
}

interface Line {
  stream: string;
  message: string;
}

/** Writes a line to the same stream as the program did, or to stderr with --json. Escapes are removed on a terminal. */
export function writeLine({ stream, message }: Line, { json, raw }: { json: boolean; raw: boolean }): void {
  const to = stream === "stdout" && !json ? process.stdout : process.stderr;
  to.write(`${to.isTTY && !raw ? terminalText(message) : message}\n`);
}

type Message = Line & { run?: Run };

/** Streams the lines of a run until it has ended. Returns the run. */
export async function followRun(
  client: Client,
  { app_name, run_id }: { app_name: string; run_id: string },
  line: (line: Line) => void,
): Promise<Run> {
  const route = "GET /v1/apps/:app_name/runs/:run_id/logs";
  const request = { params: { app_name, run_id }, query: { follow: true } };
  for await (const message of client.stream<typeof route, Message>(route, request)) {
    if (message.run) return message.run;
    line(message);
  }
  throw new ClientError(0, {
    error: `the output of run ${run_id} was interrupted; the platform may have been restarted`,
    hint: `hangar runs logs ${run_id} --follow --app ${app_name}`,
  });
}
