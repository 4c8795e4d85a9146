/** A whole platform for a test: own data dir, own port, removed at the end. */
import { readFileSync } from "node:fs";
import type { TestContext } from "node:test";
import { readSettings } from "#core/settings.ts";
import { type Platform, type PlatformOptions, startPlatform } from "../src/platform.ts";
import { tempDir } from "./support.ts";

export interface Answer {
  status: number;
  headers: Record<string, unknown>;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  body: any;
  text: string;
}

export interface TestPlatform extends Platform {
  data_dir: string;
  token: string;
  /** A request without a socket; `token` null sends none, undefined the full-access one. */
  ask(
    target: string,
    options?: { body?: unknown; token?: string | null; headers?: Record<string, string> },
  ): Promise<Answer>;
}

type Settings = Record<string, string>;

const QUIET: Settings = { HANGAR_LISTEN: "127.0.0.1:0", HANGAR_LOG_LEVEL: "error", HANGAR_DRIVER: "sim" };

export async function testPlatform(
  t: Pick<TestContext, "after">,
  env: Settings = {},
  options: PlatformOptions = {},
): Promise<TestPlatform> {
  const data_dir = env["HANGAR_DATA_DIR"] ?? tempDir();
  const platform = await startPlatform(readSettings([], { ...QUIET, HANGAR_DATA_DIR: data_dir, ...env }), options);
  let open = true;
  const close = async (): Promise<void> => {
    if (open) await platform.close();
    open = false;
  };
  t.after(close);
  const token = readFileSync(platform.token_file, "utf8").trim();
  return { ...platform, close, data_dir, token, ask: (target, asked) => ask(platform, token, target, asked) };
}

async function ask(
  platform: Platform,
  full: string,
  target: string,
  options: Parameters<TestPlatform["ask"]>[1] = {},
): Promise<Answer> {
  const [method = "GET", url = "/"] = target.split(" ");
  const token = options.token === undefined ? full : options.token;
  const headers: Record<string, string> = {
    // Without it a stream of events would never end.
    accept: "application/json",
    ...(token === null ? {} : { authorization: `Bearer ${token}` }),
    ...(options.body === undefined ? {} : { "content-type": "application/json" }),
    ...options.headers,
  };
  const payload = typeof options.body === "string" ? options.body : JSON.stringify(options.body);
  const response = await platform.inject({
    method: method as "GET",
    url,
    headers,
    ...(options.body === undefined ? {} : { payload }),
  });
  const text = response.payload;
  const json = String(response.headers["content-type"]).startsWith("application/json") && text !== "";
  return { status: response.statusCode, headers: response.headers, text, body: json ? JSON.parse(text) : undefined };
}
