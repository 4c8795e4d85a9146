import { LIMITS } from "./limits.ts";
import { count } from "./words.ts";

/**
 * Conditions that narrow a token. A request must satisfy all of them; a caveat about a kind of resource refuses
 * requests about other kinds. So adding a caveat can only remove rights.
 */
export type Caveat =
  | { type: "org"; org: string; actions: Actions }
  | { type: "actions"; actions: Actions }
  | { type: "apps"; apps: Record<string, Actions> }
  | { type: "machines"; machines: Record<string, Actions> }
  | { type: "validity"; not_before_s: number; not_after_s: number }
  | { type: "from_machine"; machine: string }
  /** At least one of the groups must hold completely. */
  | { type: "any"; of: readonly (readonly Caveat[])[] }
  /** From a later version of the platform. Kept so that the signature can be verified; always refuses. */
  | { type: "unknown"; wire: WireCaveat };

/** A bit mask of the values below. */
export type Actions = number;
export const ACTIONS = { read: 1, write: 2, create: 4, delete: 8, control: 16 } as const;
export type Action = keyof typeof ACTIONS;
export const ALL_ACTIONS: Actions = 31;
const ACTION_NAMES = Object.keys(ACTIONS) as Action[];

/** What a request needs, as far as tokens are concerned. */
export interface AccessRequest {
  action: Action;
  /** Slug of the organization. */
  org?: string;
  app?: string;
  machine?: string;
  /** The machine whose own socket the request came through. */
  from_machine?: string;
  now_ms: number;
}

/** Why the caveats refuse the request, or undefined when all hold. */
export function refusal(caveats: readonly Caveat[], request: AccessRequest): string | undefined {
  for (const caveat of caveats) {
    const reason = refusedBy(caveat, request);
    if (reason !== undefined) return reason;
  }
  return undefined;
}

function refusedBy(caveat: Caveat, request: AccessRequest): string | undefined {
  switch (caveat.type) {
    case "org":
      if (request.org !== caveat.org) return `caveat org: the token is for organization ${caveat.org} only`;
      return missing("org", caveat.actions, request.action);
    case "actions":
      return missing("actions", caveat.actions, request.action);
    case "apps":
      return resource("apps", "app", caveat.apps, request.app, request.action);
    case "machines":
      return resource("machines", "machine", caveat.machines, request.machine, request.action);
    case "validity":
      if (request.now_ms >= caveat.not_after_s * 1000)
        return `caveat validity: the token expired ${at(caveat.not_after_s)}`;
      if (request.now_ms < caveat.not_before_s * 1000)
        return `caveat validity: the token is valid from ${at(caveat.not_before_s)}`;
      return undefined;
    case "from_machine":
      if (request.from_machine === caveat.machine) return undefined;
      return `caveat from_machine: the token works only from inside machine ${caveat.machine}`;
    case "any": {
      const reasons = caveat.of.map((group) => refusal(group, request));
      if (reasons.includes(undefined)) return undefined;
      return `caveat any: none of its ${count(reasons.length, "alternative")} holds (${reasons.join("; ")})`;
    }
    case "unknown":
      return "a caveat of a kind this platform does not know";
  }
}

function missing(name: string, allowed: Actions, action: Action): string | undefined {
  if (allowed & ACTIONS[action]) return undefined;
  return `caveat ${name}: the token allows ${actionWords(allowed)}, this needs ${action}`;
}

function resource(
  name: string,
  noun: string,
  allowed: Record<string, Actions>,
  wanted: string | undefined,
  action: Action,
): string | undefined {
  const names = Object.keys(allowed).join(", ");
  if (wanted === undefined)
    return `caveat ${name}: the token is for ${noun} ${names} only, and this is not about one ${noun}`;
  const actions = Object.hasOwn(allowed, wanted) ? allowed[wanted] : undefined;
  if (actions === undefined) return `caveat ${name}: the token is for ${noun} ${names} only`;
  return missing(name, actions, action);
}

/** `read and control`; `everything`. */
export function actionWords(actions: Actions): string {
  const names = ACTION_NAMES.filter((name) => actions & ACTIONS[name]);
  if (names.length === ACTION_NAMES.length) return "everything";
  if (names.length === 0) return "nothing";
  return names.length === 1 ? `${names[0]}` : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** Describes a caveat for display. */
export function caveatWords(caveat: Caveat): string {
  const each = (map: Record<string, Actions>): string =>
    Object.entries(map)
      .map(([name, actions]) => `${name} (${actionWords(actions)})`)
      .join(", ");
  switch (caveat.type) {
    case "org":
      return `only organization ${caveat.org}: ${actionWords(caveat.actions)}`;
    case "actions":
      return `only ${actionWords(caveat.actions)}`;
    case "apps":
      return `only app ${each(caveat.apps)}`;
    case "machines":
      return `only machine ${each(caveat.machines)}`;
    case "validity":
      return `valid ${caveat.not_before_s === 0 ? "" : `from ${at(caveat.not_before_s)} `}until ${at(caveat.not_after_s)}`;
    case "from_machine":
      return `only from inside machine ${caveat.machine}`;
    case "any":
      return `at least one of: ${caveat.of.map((group) => `[${group.map(caveatWords).join(" and ")}]`).join(" or ")}`;
    case "unknown":
      return "a caveat of a kind this version does not know: it refuses everything";
  }
}

/** The last second that a Date can represent; a token may name a later one. */
const LAST_S = 8_640_000_000_000;
const at = (seconds: number): string => new Date(Math.min(seconds, LAST_S) * 1000).toISOString().replace(".000Z", "Z");

/** `[kind, …]`; the numbers of kinds are part of the format and never change. */
export type WireCaveat = readonly unknown[];
const KIND = { org: 1, actions: 2, apps: 3, machines: 4, validity: 5, from_machine: 6, any: 7 } as const;

export function toWire(caveat: Caveat): WireCaveat {
  switch (caveat.type) {
    case "org":
      return [KIND.org, caveat.org, caveat.actions];
    case "actions":
      return [KIND.actions, caveat.actions];
    case "apps":
      return [KIND.apps, sorted(caveat.apps)];
    case "machines":
      return [KIND.machines, sorted(caveat.machines)];
    case "validity":
      return [KIND.validity, caveat.not_before_s, caveat.not_after_s];
    case "from_machine":
      return [KIND.from_machine, caveat.machine];
    case "any":
      return [KIND.any, caveat.of.map((group) => group.map(toWire))];
    case "unknown":
      return caveat.wire;
  }
}

function sorted(map: Record<string, Actions>): [string, Actions][] {
  return Object.entries(map).sort(([a], [b]) => (a < b ? -1 : 1));
}

/** Anything that is not exactly a known caveat becomes `unknown`, which refuses. */
export function fromWire(wire: unknown, depth: number): Caveat {
  const unknown: Caveat = { type: "unknown", wire: Array.isArray(wire) ? (wire as WireCaveat) : [wire] };
  if (!Array.isArray(wire)) return unknown;
  const [kind, first, second] = wire as WireCaveat;
  // Only a number is a kind: a parsed caveat must serialize to the same bytes.
  if (typeof kind !== "number") return unknown;
  return READERS[`${kind}/${wire.length - 1}`]?.(first, second, depth) ?? unknown;
}

type Reader = (first: unknown, second: unknown, depth: number) => Caveat | undefined;

/** By kind and number of parts. */
const READERS: Record<string, Reader> = {
  [`${KIND.org}/2`]: (org, actions) => (isName(org) && isActions(actions) ? { type: "org", org, actions } : undefined),
  [`${KIND.actions}/1`]: (actions) => (isActions(actions) ? { type: "actions", actions } : undefined),
  [`${KIND.apps}/1`]: (pairs) => ifDefined(readMap(pairs), (apps) => ({ type: "apps", apps })),
  [`${KIND.machines}/1`]: (pairs) => ifDefined(readMap(pairs), (machines) => ({ type: "machines", machines })),
  [`${KIND.validity}/2`]: (from, until) =>
    isSeconds(from) && isSeconds(until) ? { type: "validity", not_before_s: from, not_after_s: until } : undefined,
  [`${KIND.from_machine}/1`]: (machine) => (isName(machine) ? { type: "from_machine", machine } : undefined),
  [`${KIND.any}/1`]: (groups, _, depth) => readAny(groups, depth),
};

function readAny(groups: unknown, depth: number): Caveat | undefined {
  if (depth >= LIMITS.token_nesting || !Array.isArray(groups) || groups.length === 0) return undefined;
  if (!groups.every((group): group is unknown[] => Array.isArray(group) && group.length > 0)) return undefined;
  return { type: "any", of: groups.map((group) => group.map((caveat) => fromWire(caveat, depth + 1))) };
}

function readMap(pairs: unknown): Record<string, Actions> | undefined {
  if (!Array.isArray(pairs) || pairs.length === 0) return undefined;
  const map: Record<string, Actions> = Object.create(null) as Record<string, Actions>;
  for (const pair of pairs as unknown[]) {
    const [name, actions] = Array.isArray(pair) && pair.length === 2 ? (pair as unknown[]) : [];
    if (!isName(name) || !isActions(actions) || Object.hasOwn(map, name)) return undefined;
    map[name] = actions;
  }
  return map;
}

const ifDefined = <T, U>(value: T | undefined, make: (value: T) => U): U | undefined =>
  value === undefined ? undefined : make(value);
const isName = (value: unknown): value is string =>
  typeof value === "string" && value.length > 0 && value.length <= 255;
const isActions = (value: unknown): value is Actions =>
  Number.isInteger(value) && Number(value) >= 0 && Number(value) <= ALL_ACTIONS;
const isSeconds = (value: unknown): value is number => Number.isSafeInteger(value) && Number(value) >= 0;
