import { type StdioOptions, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import { Client, type Outgoing } from "#client/client.ts";
import { HOST_FILES } from "#core/host-status.ts";
import { placeNamed, readPlaces } from "./contexts/file.ts";
import { holdBack } from "./dry-run.ts";
import { sendOverHttp } from "./http-transport.ts";
import { installedDataDir } from "./platform/service-unit.ts";
import { nodeFlags, programEnvironment } from "./program-environment.ts";
import { printError } from "./terminal-text.ts";
import { type Context, UsageError } from "./verb.ts";

export interface GlobalOptions {
  json?: boolean;
  url?: string;
  token?: string;
  dataDir?: string;
  showRequest?: boolean;
  dryRun?: boolean;
  context?: string;
}

type Env = Readonly<Record<string, string | undefined>>;

export function createContext(options: GlobalOptions, env: Env, allVerbs: Context["allVerbs"]): Context {
  const data_dir = resolve(options.dataDir ?? env["HANGAR_DATA_DIR"] ?? usualDataDir());
  const { url, token: known, because, own } = choose(options, env, data_dir);
  const say = printError;
  const client = new Client({
    base_url: url,
    token: known,
    transport: sendOverHttp,
    onRequest(request) {
      if (because === DEFAULT && existsSync(join(data_dir, HOST_FILES.place))) throw noApi(data_dir);
      if (options.dryRun) holdBack(request);
      if (options.showRequest) say(asCurl(request));
    },
  });
  return {
    client,
    data_dir,
    chosen: because,
    is_of_data_dir: own,
    say,
    token: () => known ?? noToken(data_dir),
    stdin: () => text(process.stdin),
    allVerbs,
    runProgram: (file, args, how) => runProgram(file, args, how, data_dir),
  };
}

const DEFAULT = "the default";

const noApi = (data_dir: string): UsageError =>
  new UsageError(
    `${data_dir} is of a process that only runs machines (--role host): it has no API. Set HANGAR_URL and HANGAR_TOKEN to a control process, or use \`hangar context\``,
  );

/** The data dir of the current directory, else that of the installed service. */
function usualDataDir(): string {
  const here = ".hangar";
  if (existsSync(here)) return here;
  const service = installedDataDir();
  return existsSync(service) ? service : here;
}

interface Choice {
  url: string;
  token: string | undefined;
  /** Explanation for the user. */
  because: string;
  /** Whether it is the platform of the data dir. */
  own: boolean;
}

/**
 * Chooses the platform: a flag wins over the environment, that over the current context, that over the data dir, unless
 * one was named.
 */
function choose(options: GlobalOptions, env: Env, data_dir: string): Choice {
  const named = options.context ?? env["HANGAR_CONTEXT"];
  const places = readPlaces(env);
  const elsewhere = options.url ?? env["HANGAR_URL"] ?? options.dataDir ?? env["HANGAR_DATA_DIR"];
  const name = named ?? (elsewhere === undefined ? places.current : undefined);
  const place = name === undefined ? undefined : placeNamed(places, name);
  const recorded = fileText(join(data_dir, "address"));
  // `--context` overrides the environment completely.
  const environment = options.context === undefined ? env : {};
  const found: [string | undefined, string][] = [
    [options.url, "--url"],
    [environment["HANGAR_URL"], "HANGAR_URL"],
    [place?.url, `context ${name}`],
    [recorded, `the data dir ${data_dir}`],
  ];
  const [url = "http://127.0.0.1:4280", because = DEFAULT] = found.find(([address]) => address !== undefined) ?? [];
  if (!URL.canParse(url)) throw new UsageError(`${url} is not an address such as http://127.0.0.1:4280`);
  const token =
    options.token ?? environment["HANGAR_TOKEN"] ?? (place ? place.token : fileText(join(data_dir, "token")));
  const chosen_url = options.url ?? environment["HANGAR_URL"] ?? place?.url;
  const own = chosen_url === undefined || chosen_url === recorded;
  return { url, token, because, own };
}

const fileText = (file: string): string | undefined =>
  existsSync(file) ? readFileSync(file, "utf8").trim() : undefined;

function noToken(data_dir: string): never {
  throw new UsageError(
    `there is no token: ${join(data_dir, "token")} does not exist, or is not yours to read. Start the platform once (hangar up), run this as its user (sudo), or set HANGAR_TOKEN`,
  );
}

/** The equivalent curl command; the token is fetched, not shown. */
export function asCurl({ method, url, headers, body }: Outgoing): string {
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
  const env = { ...programEnvironment(process.env), HANGAR_DATA_DIR: data_dir };
  const command = [...nodeFlags(file), program, ...args];
  // Replaces this process, which would only wait and hold 60 MiB.
  if (how === "foreground" && process.execve && !process.connected)
    return process.execve(process.execPath, [process.execPath, ...command], env);
  // Under an older Node (bin/hangar.mjs) there is an IPC channel, by which a child notices that its parent was killed.
  const stdio: StdioOptions =
    how === "foreground" ? ["inherit", "inherit", "inherit", "ipc"] : ["ignore", "pipe", "inherit"];
  const child = spawn(process.execPath, command, { stdio, env });
  const forward = (signal: NodeJS.Signals): void => void child.kill(signal);
  process.on("SIGINT", forward).on("SIGTERM", forward);
  const output = child.stdout ? text(child.stdout) : Promise.resolve("");
  const [code] = (await once(child, "exit")) as [number | null];
  return { exit: code ?? 1, text: (await output).trim() };
}
