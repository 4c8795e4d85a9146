/** Computes the notifications to send: routes, groups, silences, inhibition. Pure function of state. */
import { createHash } from "node:crypto";
import { keyOf } from "../rules/group.ts";
import type { Alert, LabelMap } from "../rules/types.ts";
import { matcherText, matchesAll, parseMatcher } from "./matchers.ts";
import type { InhibitRule, Message, NotificationConfig, NotifiedAlert, Route, Silence } from "./types.ts";

/** State of a group between notifications. */
export interface GroupState {
  key: string;
  next_ms: number;
  /** The last message: when, and which alerts were firing and resolved in it. */
  sent_ms: number;
  firing: string[];
  resolved: string[];
}

export interface Dispatched {
  groups: GroupState[];
  removed: string[];
  messages: (Message & { only_resolved: boolean })[];
}

export function notified({
  labels,
  annotations,
  state,
  fired_at_ms,
  active_at_ms,
  resolved_at_ms,
}: Alert): NotifiedAlert {
  return {
    fingerprint: createHash("sha256").update(keyOf(labels)).digest("hex").slice(0, 16),
    labels,
    annotations,
    firing: state === "firing",
    starts_at_ms: fired_at_ms ?? active_at_ms,
    ends_at_ms: resolved_at_ms,
  };
}

/** The routes of an alert: the deepest that match. */
export function routesFor(route: Route, labels: LabelMap, path = "{}"): { route: Route; path: string }[] {
  if (!matchesAll(route.matchers, labels)) return [];
  const found: { route: Route; path: string }[] = [];
  for (const [at, one] of route.routes.entries()) {
    const inside = routesFor(one, labels, `${path}/${at}{${one.matchers.map(matcherText).join(",")}}`);
    found.push(...inside);
    if (inside.length > 0 && !one.continues) break;
  }
  return found.length > 0 ? found : [{ route, path }];
}

export const silencedBy = (silences: readonly Silence[], labels: LabelMap, now: number): string[] =>
  silences
    .filter(({ starts_at, ends_at }) => starts_at <= now && now < ends_at)
    .filter(({ matchers }) => matchesAll(matchers.map(parseMatcher), labels))
    .map(({ id }) => id);

export function inhibitedBy(
  rules: readonly InhibitRule[],
  alerts: readonly NotifiedAlert[],
  labels: LabelMap,
): string[] {
  return rules
    .filter(({ target }) => target.length > 0 && matchesAll(target, labels))
    .flatMap(({ source, target, equal }) => {
      // An alert that both sides match is not inhibited by another such alert.
      const isBoth = matchesAll(source, labels);
      return alerts
        .filter((one) => one.firing && matchesAll(source, one.labels) && keyOf(one.labels) !== keyOf(labels))
        .filter((one) => !(isBoth && matchesAll(target, one.labels)))
        .filter((one) => equal.every((name) => (one.labels[name] ?? "") === (labels[name] ?? "")))
        .map(({ fingerprint }) => fingerprint);
    });
}

export interface DispatchInput {
  config: NotificationConfig;
  alerts: readonly NotifiedAlert[];
  silences: readonly Silence[];
  known: ReadonlyMap<string, GroupState>;
  external_url: string;
  now: number;
}

export function dispatch(input: DispatchInput): Dispatched {
  const { config, alerts, known } = input;
  const result: Dispatched = { groups: [], removed: [], messages: [] };
  const groups = config.route ? grouped(config.route, alerts) : new Map<string, Group>();
  for (const key of known.keys()) if (!groups.has(key)) result.removed.push(key);
  for (const group of groups.values()) dispatchGroup(input, group, result);
  return result;
}

function dispatchGroup(input: DispatchInput, group: Group, result: Dispatched): void {
  const { known, now } = input;
  const { key, route } = group;
  const before = known.get(key);
  const isFiring = group.alerts.some(({ firing }) => firing);
  if (!before && !isFiring) return;
  const state = before ?? { key, next_ms: now + route.group_wait_ms, sent_ms: 0, firing: [], resolved: [] };
  if (state.next_ms > now) {
    if (!before) result.groups.push(state);
    return;
  }
  const active = group.alerts.filter((alert) => isActive(input, alert));
  const message = messageOf(group, state, active, now);
  const next: GroupState = { ...state, next_ms: now + route.group_interval_ms, ...message?.state };
  if (message) result.messages.push({ ...message.message, external_url: input.external_url });
  if (!isFiring && next.firing.length === 0) result.removed.push(key);
  else result.groups.push(next);
}

interface Group {
  key: string;
  labels: LabelMap;
  route: Route;
  alerts: NotifiedAlert[];
}

function grouped(root: Route, alerts: readonly NotifiedAlert[]): Map<string, Group> {
  const groups = new Map<string, Group>();
  for (const alert of alerts)
    for (const { route, path } of routesFor(root, alert.labels)) {
      const names = route.group_by ?? Object.keys(alert.labels);
      const labels = Object.fromEntries(
        names.flatMap((name) => (alert.labels[name] ? [[name, alert.labels[name]]] : [])),
      );
      const key = `${path}:${keyOf(labels)}`;
      const group = groups.get(key) ?? { key, labels, route, alerts: [] };
      groups.set(key, group);
      group.alerts.push(alert);
    }
  return groups;
}

const isActive = ({ config, alerts, silences, now }: DispatchInput, { labels }: NotifiedAlert): boolean =>
  silencedBy(silences, labels, now).length === 0 && inhibitedBy(config.inhibit_rules, alerts, labels).length === 0;

/** Alertmanager's deduplication: undefined when there is nothing new to send. */
function messageOf(
  { key, labels, route, alerts: all }: Group,
  state: GroupState,
  active: readonly NotifiedAlert[],
  now: number,
) {
  const firing = active.filter((alert) => alert.firing).map(({ fingerprint }) => fingerprint);
  // Resolved is sent only for alerts that were sent as firing.
  const ended = active.filter(({ firing: isFiring, fingerprint }) => !isFiring && state.firing.includes(fingerprint));
  const isNew = firing.some((one) => !state.firing.includes(one));
  const isRepeat = firing.length > 0 && state.sent_ms > 0 && now - state.sent_ms >= route.repeat_interval_ms;
  if (!isNew && ended.length === 0 && !isRepeat) return undefined;
  const alerts = active.filter((alert) => alert.firing || ended.includes(alert));
  // Silenced in the meantime: resolved is sent after the silence has ended.
  const quiet = all
    .filter((alert) => alert.firing && !active.includes(alert))
    .flatMap(({ fingerprint }) => (state.firing.includes(fingerprint) ? [fingerprint] : []));
  return {
    message: {
      receiver: route.receiver,
      group_key: key,
      group_labels: labels,
      alerts,
      // Only resolved alerts: receivers without send_resolved get no message.
      only_resolved: !isNew && !isRepeat,
    },
    state: {
      sent_ms: isNew || isRepeat ? now : state.sent_ms,
      firing: [...firing, ...quiet],
      resolved: ended.map(({ fingerprint }) => fingerprint),
    },
  };
}
