import type { IncomingMessage } from "node:http";
import { assert } from "#core/assert.ts";
import type { Action } from "#core/caveats.ts";
import type { Prefetched } from "#core/prefetched.ts";

/**
 * The access rule of a route: a required field of its row.
 *
 * - `open`: anyone, without a token.
 * - `any`: any valid token.
 * - `machine`: a machine itself, authenticated by its address or its identity token; other tokens are refused.
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
  /** Identifies this exact token: an attenuated token shares the id but has another fingerprint. */
  fingerprint?: string;
  /** A connector's credential, used by machines through the gateway. It may not create credentials. */
  is_borrowed?: boolean;
  /** Labels of the series that it pushes: set for a machine. */
  series_labels?: Readonly<Record<string, string>>;
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

/** The organization of a route with `org_slug`. */
export function orgOf({ org }: Admitted): { id: string; slug: string } {
  assert(org, "a route about an organization has one");
  return org;
}

/** The app of a route with `:app_name`. */
export function appOf({ app }: Admitted): { id: string; name: string } {
  assert(app, "a route about an app has one");
  return app;
}

export interface Intent {
  writes: boolean;
  /** It responds at once, so it may start with cached rows and confirm them before the response. */
  confirms: boolean;
}

/** Reads the rows that a request will need in one round trip. Absent for a local database. */
export type Prefetch = (wanted: Target & Intent & { token_id?: string | undefined }) => Prefetched;

/** Authenticates and authorizes callers; implemented by the auth module. */
export interface Guard {
  /** Starts reading the rows of a request before it is authorized: the checks use the result. */
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
