import type { Release } from "./release-store.ts";
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

export function aRelease(change: Partial<Release> = {}): Omit<Release, "version"> {
  return {
    app_id: "a1",
    status: "running",
    description: "first",
    message: "faster start",
    git_commit: "c".repeat(40),
    git_branch: null,
    failure: null,
    progress: null,
    strategy: "rolling",
    definition: '{"app":"a1"}',
    image: "web:1",
    image_digest: `sha256:${"a".repeat(64)}`,
    lease_ms: null,
    created_by: "full-access token",
    created_at: 5,
    updated_at: 5,
    ...change,
  };
}
