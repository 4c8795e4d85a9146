import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { Client, type Outgoing } from "#client/client.ts";
import { type Context, UsageError } from "./verb.ts";

export interface GlobalOptions {
  json?: boolean;
  url?: string;
  token?: string;
  dataDir?: string;
  showRequest?: boolean;
}

export function createContext(options: GlobalOptions, env: Record<string, string | undefined>): Context {
  const data_dir = resolve(options.dataDir ?? env["HANGAR_DATA_DIR"] ?? ".hangar");
  const known = findToken(options, env, data_dir);
  const say = (line: string): void => void process.stderr.write(`${line}\n`);
  const client = new Client({
    base_url: baseUrl(options, env, data_dir),
    token: known,
    ...(options.showRequest ? { onRequest: (request: Outgoing) => say(asCurl(request)) } : {}),
  });
  return {
    client,
    data_dir,
    say,
    token: () => known ?? noToken(data_dir),
    stdin: () => text(process.stdin),
    runProgram: (file, args, how) => runProgram(file, args, how, data_dir),
  };
}

function findToken(
  options: GlobalOptions,
  env: Record<string, string | undefined>,
  data_dir: string,
): string | undefined {
  const file = join(data_dir, "token");
  return options.token ?? env["HANGAR_TOKEN"] ?? (existsSync(file) ? readFileSync(file, "utf8").trim() : undefined);
}

function noToken(data_dir: string): never {
  throw new UsageError(
    `there is no token: ${join(data_dir, "token")} does not exist. Start the platform once (npm start), or set HANGAR_TOKEN`,
  );
}

/** Where the platform is: as said, else where the one of this data dir listens, else the default. */
function baseUrl(options: GlobalOptions, env: Record<string, string | undefined>, data_dir: string): string {
  const file = join(data_dir, "address");
  const recorded = existsSync(file) ? readFileSync(file, "utf8").trim() : "http://127.0.0.1:4280";
  const url = options.url ?? env["HANGAR_URL"] ?? recorded;
  if (!URL.canParse(url)) throw new UsageError(`${url} is not an address such as http://127.0.0.1:4280`);
  return url;
}

/** The same request for a terminal; the token is fetched, not shown. */
function asCurl({ method, url, headers, body }: Outgoing): string {
  const quote = (word: string): string => `'${word.replaceAll("'", "'\\''")}'`;
  const lines = Object.entries(headers).map(([name, value]) =>
    name === "authorization" ? '-H "Authorization: Bearer $(hangar auth token)"' : `-H ${quote(`${name}: ${value}`)}`,
  );
  return ["curl", `-X ${method}`, ...lines, ...(body === undefined ? [] : [`-d ${quote(body)}`]), quote(url)].join(" ");
}

async function runProgram(
  file: string,
  args: readonly string[],
  how: "foreground" | "quiet",
  data_dir: string,
): Promise<{ exit: number; text: string }> {
  const program = fileURLToPath(new URL(`../${file}`, import.meta.url));
  const stdio = how === "foreground" ? "inherit" : (["ignore", "pipe", "inherit"] as const);
  const child = spawn(process.execPath, [program, ...args], {
    stdio: stdio as "inherit",
    env: { ...process.env, HANGAR_DATA_DIR: data_dir },
  });
  const forward = (signal: NodeJS.Signals): void => void child.kill(signal);
  process.on("SIGINT", forward).on("SIGTERM", forward);
  const output = child.stdout ? text(child.stdout as NodeJS.ReadableStream) : Promise.resolve("");
  const [code] = (await once(child, "exit")) as [number | null];
  return { exit: code ?? 1, text: (await output).trim() };
}
