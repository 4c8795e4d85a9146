import type { App, Secret } from "./types.ts";

/** Valid defaults for tests. */
export function anApp(change: Partial<App> = {}): App {
  return {
    id: "app1",
    name: "web",
    org_id: "org1",
    numeric_id: 7,
    network: "default",
    secrets_version: 0,
    created_at: 1_700_000_000_000,
    ...change,
  };
}

export function aSecret(change: Partial<Secret> = {}): Secret {
  return { name: "A", sealed: Uint8Array.of(1, 2, 3), digest: "d", created_at: 1, updated_at: 1, ...change };
}
