import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { messageOf } from "#core/assert.ts";
import type { Log } from "#core/log.ts";
import { PROXY_LIMITS } from "./limits.ts";

/** Sets and removes TXT records in the operator's DNS zones. */
export interface DnsRecords {
  /** Resolves when name servers return the record. */
  present(name: string, value: string): Promise<void>;
  cleanup(name: string, value: string): Promise<void>;
}

const execute = promisify(execFile);
/** Maximum output; more ends the program. */
const OUTPUT_BYTES = 1024 * 1024;

/** The environment for other programs, without our settings, which contain secrets. */
export const withoutOwn = (env: NodeJS.ProcessEnv): NodeJS.ProcessEnv =>
  Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith("HANGAR_")));

/** Runs the operator's program: `<program> present|cleanup <name> <value>`. Exit code 0 is success. */
export class DnsHook implements DnsRecords {
  readonly #program: string;
  readonly #log: Log;

  constructor(program: string, log: Log) {
    this.#program = program;
    this.#log = log;
  }

  present(name: string, value: string): Promise<void> {
    return this.#run("present", name, value);
  }

  cleanup(name: string, value: string): Promise<void> {
    return this.#run("cleanup", name, value);
  }

  async #run(action: string, name: string, value: string): Promise<void> {
    const { acme_hook_ms: timeout } = PROXY_LIMITS;
    try {
      await execute(this.#program, [action, name, value], {
        env: withoutOwn(process.env),
        timeout,
        killSignal: "SIGKILL",
        maxBuffer: OUTPUT_BYTES,
      });
    } catch (thrown) {
      const { killed, code, stderr = "" } = thrown as { killed?: boolean; code?: number | string; stderr?: string };
      this.#log.warn({ action, name, error: messageOf(thrown), stderr: stderr.slice(-2000) }, "the DNS hook failed");
      const how = killed
        ? `did not end in ${timeout / 1000} s (limit acme_hook_ms)`
        : `failed (${code ?? "no reason"})`;
      // The program's output may contain the operator's secrets, so the app's owner does not see it.
      throw new Error(`the DNS hook ${how} to ${action} the TXT record ${name}; the platform's log has its output`);
    }
  }
}
