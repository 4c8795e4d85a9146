/** The platform as its own process, the way people run it, and a caller with its token. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type Child, startProgram } from "./child.ts";

interface Answer {
  status: number;
  headers: Headers;
  body: Record<string, unknown>;
}

export interface Daemon {
  child: Child;
  base_url: string;
  /** The full-access token. */
  token: string;
  /** A request with the full-access token. Rejects when no answer came. */
  call(method: string, path: string, body?: object, headers?: Record<string, string>): Promise<Answer>;
}

/** Starts the platform on `data_dir` and resolves when it says that it is ready. */
export async function startDaemon(
  t: Pick<TestContext, "after">,
  data_dir: string,
  settings: readonly string[] = [],
  env: NodeJS.ProcessEnv = {},
): Promise<Daemon> {
  const args = ["--data-dir", data_dir, "--listen", "127.0.0.1:0", "--driver", "sim", ...settings];
  const child = startProgram(t, "src/main.ts", args, env);
  await child.until(/ is ready /);
  const base_url = / API +(\S+)/.exec(await child.until(/^ +API /))?.[1] ?? "";
  const token = readFileSync(join(data_dir, "token"), "utf8").trim();
  return {
    child,
    base_url,
    token,
    async call(method, path, body, headers = {}) {
      const response = await fetch(`${base_url}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json", ...headers },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      const text = await response.text();
      const parsed = text === "" ? {} : (JSON.parse(text) as Record<string, unknown>);
      return { status: response.status, headers: response.headers, body: parsed };
    },
  };
}
