/** A platform with the listener for Fly's clients, and requests as they make them. */
import type { TestContext } from "node:test";
import { type TestPlatform, testPlatform } from "./platform.ts";

export interface FlyAnswer {
  status: number;
  headers: Headers;
  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  body: any;
}

export interface FlyPlatform extends TestPlatform {
  fly: string;
  /** A request to the Fly listener; `authorization` as it is sent, the full-access token by default. */
  flies(
    target: string,
    options?: { body?: unknown; authorization?: string | null; nonce?: string },
  ): Promise<FlyAnswer>;
  graphql(query: string, variables?: object, authorization?: string): Promise<FlyAnswer>;
}

export async function flyPlatform(
  t: Pick<TestContext, "after">,
  env: Record<string, string> = {},
): Promise<FlyPlatform> {
  const platform = await testPlatform(t, { HANGAR_FLY_LISTEN: "127.0.0.1:0", ...env });
  const fly = platform.fly_url ?? "";
  const flies: FlyPlatform["flies"] = async (target, { body, nonce, ...options } = {}) => {
    const [method = "GET", path = "/"] = target.split(" ");
    const authorization = options.authorization === undefined ? `FlyV1 ${platform.token}` : options.authorization;
    const response = await fetch(`${fly}${path}`, {
      method,
      headers: {
        ...(authorization === null ? {} : { authorization }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(nonce === undefined ? {} : { "fly-machine-lease-nonce": nonce }),
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const json = (response.headers.get("content-type") ?? "").startsWith("application/json") && text !== "";
    return { status: response.status, headers: response.headers, body: json ? JSON.parse(text) : text };
  };
  const graphql: FlyPlatform["graphql"] = (query, variables, authorization) =>
    flies("POST /graphql", { body: { query, variables }, ...(authorization ? { authorization } : {}) });
  return { ...platform, fly, flies, graphql };
}
