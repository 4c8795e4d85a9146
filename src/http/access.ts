import type { IncomingMessage } from "node:http";
import { assert } from "#core/assert.ts";
import type { Action } from "#core/caveats.ts";
import type { Prefetched } from "#core/prefetched.ts";

/**
 * Who may use a route: written in its row, and leaving it out does not compile.
 *
 * - `open`: anyone, without a token.
 * - `any`: any good token.
 * - `inside`: a machine itself, known by where the request comes from or by its identity token; no other token helps.
 * - `<action> <scope>`: the action on that kind of thing. `account` is what only a full-access token reaches.
 *   The organization comes from `org_slug` (path, query or body; else the token's own, else `personal`), the
 *   app from `:app_name`, the machine from `:machine_id`.
 */
export type Access = "open" | "any" | "machine" | `${Action} ${Scope}`;
export type Scope = "account" | "org" | "app" | "machine";

/**
 * Accepted authorization schemes. `metrics`: `Bearer` for full-access tokens, `SvcV1` for created ones. `registry`:
 * also as the password of `Basic`, with any user name, as `docker login` sends it. `git`: the same, for Git.
 */
export type SchemeRule = "any" | "metrics" | "registry" | "git";

/** An authenticated caller. */
export interface Caller {
  token_id: string;
  /** Name for logs, leases and events. */
  name: string;
  /** Identifies this very token: an attenuated token shares the id but has another fingerprint. */
  fingerprint?: string;
  /** A connector's credential, used by machines through the gateway. It may not create credentials. */
  is_borrowed?: boolean;
  /** The operator: a full-access token. */
  is_operator?: boolean;
}

export interface Target {
  org_slug?: string | undefined;
  app_name?: string | undefined;
  machine_id?: string | undefined;
}

/** The authorized resources of the request. */
export interface Admitted {
  org?: { id: string; slug: string };
  app?: { id: string; name: string };
}

/** The organization of a route about one. */
export function orgOf({ org }: Admitted): { id: string; slug: string } {
  assert(org, "a route about an organization has one");
  return org;
}

/** The app of a route about one. */
export function appOf({ app }: Admitted): { id: string; name: string } {
  assert(app, "a route about an app has one");
  return app;
}

export interface Intent {
  writes: boolean;
  /** It answers at once, so it may begin with the rows of the last time and confirm them before it answers. */
  confirms: boolean;
}

/** Reads the rows that a request will need in one round trip. Absent where a read costs none. */
export type Prefetch = (wanted: Target & Intent & { token_id?: string | undefined }) => Prefetched;

/** Authenticates and authorizes callers; implemented by the auth module. */
export interface Guard {
  /** Starts reading what a request names, before it is authorized: the checks use the result. */
  prefetch?(authorization: string | undefined, wanted: Target & Intent): Prefetched;
  /** Fails with `unauthorized` unless the header has a valid token in the right scheme. */
  identify(authorization: string | undefined, rule: SchemeRule, request: IncomingMessage): Promise<Caller>;
  /** Fails with `forbidden` when the token does not allow it, with `not_found` when the caller may not see it. */
  admit(caller: Caller, access: Exclude<Access, "open" | "machine">, target: Target): Promise<Admitted>;
}

/** Authenticates machines that call the platform. Implemented by the identity module. */
export interface MachineAuthenticator {
  /** Fails with `unauthorized` unless the request comes from a machine. */
  identify(request: IncomingMessage): Promise<Caller>;
}
