import type { Org, Token } from "./types.ts";

/** Valid defaults for tests. */
export function anOrg(change: Partial<Org> = {}): Org {
  return { id: "org1", slug: "acme", name: "Acme", numeric_id: 1, created_at: 1_700_000_000_000, ...change };
}

export function aToken(change: Partial<Token> = {}): Token {
  return {
    id: "token1",
    org_id: "org1",
    kind: "org",
    name: "",
    secret: new Uint8Array(32),
    created_at: 1_700_000_000_000,
    expires_at: null,
    revoked_at: null,
    parent_id: null,
    ...change,
  };
}
