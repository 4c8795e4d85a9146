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
export type Access = "open" | "any" | "inside" | `${Action} ${Scope}`;
export type Scope = "account" | "org" | "app" | "machine";

/**
 * Which schemes a token may come with. `metrics`: `Bearer` for full-access tokens, `SvcV1` for created ones. `registry`:
 * as the password of `Basic` as well, with any user name, as `docker login` sends it.
 */
export type SchemeRule = "any" | "metrics" | "registry";

/** Who is calling, once the token was found good. */
export interface Caller {
  token_id: string;
  /** Who that is, in words, for logs, leases and events. */
  name: string;
  /** Of this very token: one that was narrowed from another has its id, and another fingerprint. */
  fingerprint?: string;
  /** A connector's credential, used by machines through the gateway. It may not make credentials. */
  is_borrowed?: boolean;
  /** Whoever runs the platform: a full-access token. */
  is_operator?: boolean;
}

export interface Target {
  org_slug?: string | undefined;
  app_name?: string | undefined;
  machine_id?: string | undefined;
}

/** What the request is about, looked up and allowed. */
export interface Admitted {
  org?: { id: string; slug: string };
  app?: { id: string; name: string };
}

/** The organization of a route that is about one. */
export function orgOf({ org }: Admitted): { id: string; slug: string } {
  assert(org, "a route about an organization has one");
  return org;
}

/** The app of a route that is about one. */
export function appOf({ app }: Admitted): { id: string; name: string } {
  assert(app, "a route about an app has one");
  return app;
}

/** Authenticates and authorizes callers; implemented by the auth module. */
/** Reads at once what a request will look up. Absent where a read costs no round trip. */
export type Prefetch = (wanted: Target & { token_id?: string | undefined; writes: boolean }) => Prefetched;

export interface Guard {
  /** Begins to read what a request names, before it is known whether it may: what is found is used by the checks. */
  prefetch?(authorization: string | undefined, target: Target, writes: boolean): Prefetched;
  /** Fails with `unauthorized` unless the header carries a good token in the right scheme. */
  identify(authorization: string | undefined, rule: SchemeRule, request: IncomingMessage): Promise<Caller>;
  /** Fails with `forbidden` when the token does not allow it, `not_found` when the caller may not even see it. */
  admit(caller: Caller, access: Exclude<Access, "open" | "inside">, target: Target): Promise<Admitted>;
}

/** Authenticates machines that call the platform; implemented by the identity module. */
export interface MachineAuthenticator {
  /** Fails with `unauthorized` unless the request comes from a machine. */
  identify(request: IncomingMessage): Promise<Caller>;
}
