/** A platform with an app, and short words for asking about its machines. */
import type { PlatformOptions } from "../src/platform.ts";
import { type Answer, type TestPlatform, testPlatform } from "./platform.ts";

export const IMAGE = "registry.example/web:1";

interface Bench extends TestPlatform {
  /** `verb path-below-machines`. */
  on(target: string, body?: unknown, headers?: Record<string, string>): Promise<Answer>;
  create(body?: object): Promise<Answer>;
  wait(id: string, state: string, extra?: string): Promise<Answer>;
}

export async function bench(
  t: Parameters<typeof testPlatform>[0],
  env: Record<string, string> = {},
  options: PlatformOptions = {},
): Promise<Bench> {
  const platform = await testPlatform(t, env, options);
  await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
  const on: Bench["on"] = (target, body, headers) => {
    const [verb, path = ""] = target.split(" ");
    const url = path === "" || path.startsWith("?") ? path : `/${path}`;
    return platform.ask(`${verb} /v1/apps/web/machines${url}`, {
      ...(body === undefined ? {} : { body }),
      ...(headers ? { headers } : {}),
    });
  };
  return {
    ...platform,
    on,
    create: (body = {}) => on("POST", { config: { image: IMAGE }, ...body }),
    wait: (id, state, extra = "") => on(`GET ${id}/wait?state=${state}${extra}`),
  };
}
