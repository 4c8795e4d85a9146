/** Evaluates the rules of all organizations on schedule; of several processes on one database, one per organization. */
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import type { MetricsEngine } from "#metrics/engine/engine.ts";
import type { Dialect } from "#metrics/promql/ast.ts";
import { DEFAULT_FILE, DEFAULT_GROUPS } from "./default-rules.ts";
import { FairShares } from "./fair-shares.ts";
import { ALERT_LIMITS } from "./limits.ts";
import { appendFunction, queryFunction } from "./query.ts";
import { evaluateGroup, type GroupParts, type RuleState } from "./rules/group.ts";
import { leaveOut, restoredStates, storedState, transitionsOf } from "./rules/state.ts";
import type { RuleGroup } from "./rules/types.ts";
import type { AlertClaim, AlertStore, StoredRuleFile } from "./store.ts";

export interface RunnerParts {
  store: AlertStore;
  orgs(): Promise<readonly { id: string; slug: string }[]>;
  engine(): Pick<MetricsEngine, "query" | "append">;
  /** Whether there may be metrics here; without any, the default rules need no engine. */
  hasMetrics(): boolean;
  /** The engine knows both dialects; otherwise rules are MetricsQL. */
  dialects: boolean;
  /** Several processes share the database. */
  is_shared: boolean;
  runner: string;
  external_url(org_slug: string): string;
  clock: Clock;
  log: Log;
  /** Called after each evaluation that changed an alert's state. */
  changed(org_id: string): void;
}

export interface RunningGroup {
  file: string;
  app_name: string | null;
  group: RuleGroup;
  states: RuleState[];
}

interface Scheduled extends RunningGroup {
  interval_ms: number;
  next_ms: number;
  parts: GroupParts;
  /** The stored transitions. */
  transitions: string;
  stored_at_ms: number;
}

interface Org {
  slug: string;
  claimed_until: number;
  /** The versions of its rule files. */
  version: string;
  groups: Scheduled[];
}

export class RuleRunner {
  readonly #parts: RunnerParts;
  readonly #orgs = new Map<string, Org>();
  readonly #closing = new AbortController();
  readonly #shares = new FairShares();
  readonly #busy = new Map<Scheduled, Promise<void>>();
  #wake = new AbortController();
  #reloaded_at = Number.NEGATIVE_INFINITY;
  #running: Promise<void> | undefined;

  constructor(parts: RunnerParts) {
    this.#parts = parts;
  }

  start(): void {
    this.#running ??= this.#run();
  }

  /** Ends evaluations under way, stores what they found, and gives up the claims. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake.abort();
    await this.#running;
    await Promise.allSettled(this.#busy.values());
    const { is_shared, store, runner } = this.#parts;
    for (const [org_id, org] of this.#orgs)
      for (const one of org.groups) await this.#store(org_id, one).catch(() => {});
    if (is_shared) await store.release(runner).catch(() => {});
  }

  /** Rule files changed: they are reloaded at once. */
  reload(): void {
    this.#reloaded_at = Number.NEGATIVE_INFINITY;
    this.#wake.abort();
  }

  /** The groups of an organization that this process evaluates; undefined when another one does. */
  groups(org_id: string): readonly RunningGroup[] | undefined {
    const org = this.#orgs.get(org_id);
    return org && this.#holds(org) ? org.groups : undefined;
  }

  #holds({ claimed_until }: Org): boolean {
    return !this.#parts.is_shared || claimed_until > this.#parts.clock.now();
  }

  slugOf(org_id: string): string {
    return this.#orgs.get(org_id)?.slug ?? "";
  }

  /** The organizations that this process evaluates. */
  get held(): readonly string[] {
    return [...this.#orgs].filter(([, org]) => this.#holds(org)).map(([id]) => id);
  }

  async #run(): Promise<void> {
    const { clock, log } = this.#parts;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      if (clock.now() - this.#reloaded_at >= ALERT_LIMITS.look_ms) {
        this.#reloaded_at = clock.now();
        await this.#reload().catch((error: unknown) => log.warn({ error }, "alert rules could not be read"));
      }
      const now = clock.now();
      for (const [org_id, org] of this.#orgs)
        for (const one of org.groups) if (one.next_ms <= now) this.#begin(org_id, org, one, now);
      await this.#sleep();
    }
  }

  async #sleep(): Promise<void> {
    const { clock } = this.#parts;
    const due = [...this.#orgs.values()].flatMap(({ groups }) => groups.map(({ next_ms }) => next_ms));
    const until = due.reduce((least, one) => Math.min(least, one), this.#reloaded_at + ALERT_LIMITS.look_ms);
    this.#wake = new AbortController();
    if (this.#closing.signal.aborted || this.#reloaded_at === Number.NEGATIVE_INFINITY) return;
    await clock.sleep(Math.max(1, until - clock.now()), this.#wake.signal).catch(() => {});
  }

  /** Claims organizations, and reads the rule files that changed. */
  async #reload(): Promise<void> {
    const { store } = this.#parts;
    const versions = Map.groupBy(await store.ruleFileVersions(), ({ org_id }) => org_id);
    const orgs = await this.#parts.orgs();
    const known = new Set(orgs.map(({ id }) => id));
    for (const id of this.#orgs.keys()) if (!known.has(id)) this.#orgs.delete(id);
    this.#shares.keep(known);
    for (const { id, slug } of orgs) await this.#reloadOrg(id, slug, JSON.stringify(versions.get(id) ?? []));
  }

  async #reloadOrg(id: string, slug: string, version: string): Promise<void> {
    const { store, is_shared, clock } = this.#parts;
    const claim = this.#claim();
    const before = this.#orgs.get(id);
    if (is_shared && !(await store.claim(id, claim))) {
      this.#orgs.delete(id);
      return;
    }
    const lapsed = before !== undefined && is_shared && before.claimed_until <= clock.now();
    if (lapsed || before?.version !== version) await this.#load(id, slug, version, lapsed ? undefined : before);
    const org = this.#orgs.get(id);
    if (org && is_shared) org.claimed_until = claim.until;
  }

  #claim(): AlertClaim {
    const now = this.#parts.clock.now();
    return { runner: this.#parts.runner, now, until: now + ALERT_LIMITS.claim_ms };
  }

  /** Unchanged groups keep their states; others load the stored states. */
  async #load(org_id: string, slug: string, version: string, before: Org | undefined): Promise<void> {
    const { store } = this.#parts;
    if (before) for (const one of before.groups) await this.#busy.get(one);
    const files = await store.ruleFiles(org_id);
    const stored = new Map((await store.states(org_id)).map((one) => [keyOf(one.file, one.group_name), one.state]));
    const lasting = new Map(
      before?.groups.map((one) => [keyOf(one.file, one.group.name), storedState(one.group, one.states)]) ?? [],
    );
    const groups: Scheduled[] = [];
    for (const { file, group, app_name, dialect } of await groupsOf(files)) {
      const key = keyOf(file, group.name);
      const states = restoredStates(group, lasting.get(key) ?? stored.get(key));
      groups.push(this.#scheduled(org_id, slug, { file, app_name, group, states }, dialect));
    }
    this.#orgs.set(org_id, { slug, claimed_until: 0, version, groups });
  }

  #scheduled(org_id: string, slug: string, running: RunningGroup, dialect: Dialect): Scheduled {
    const { engine, clock, dialects, external_url } = this.#parts;
    const { app_name, file, group } = running;
    const interval_ms = group.interval_ms ?? ALERT_LIMITS.default_interval_ms;
    const scope = { org_id, app_name, dialect: dialects ? dialect : undefined };
    return {
      ...running,
      group: app_name === null ? group : ofApp(group, app_name),
      interval_ms,
      next_ms: nextOf(clock.now(), interval_ms, offsetOf(`${org_id}/${file}/${group.name}`, interval_ms)),
      parts: {
        query: this.#shares.query(org_id, queryFunction(engine, scope)),
        append: appendFunction(engine, org_id),
        external_labels: {},
        external_url: external_url(slug),
        monotonic: () => clock.monotonic(),
      },
      transitions: transitionsOf(running.states),
      stored_at_ms: clock.now(),
    };
  }

  #begin(org_id: string, org: Org, one: Scheduled, now: number): void {
    const { interval_ms } = one;
    // Only the latest evaluation that is due; earlier ones were missed.
    const at_ms = one.next_ms + Math.floor((now - one.next_ms) / interval_ms) * interval_ms;
    one.next_ms = at_ms + interval_ms;
    if (this.#busy.has(one) || !this.#holds(org)) return;
    if (one.file === DEFAULT_FILE && !this.#parts.hasMetrics() && one.states.every(({ active }) => active.size === 0))
      return;
    const work = this.#shares
      .evaluate(org_id, () => this.#evaluate(org_id, one, at_ms))
      .catch((error: unknown) =>
        this.#parts.log.warn({ error, group: one.group.name }, "a rule group was not evaluated"),
      )
      .finally(() => this.#busy.delete(one));
    this.#busy.set(one, work);
  }

  async #evaluate(org_id: string, one: Scheduled, at_ms: number): Promise<void> {
    if (this.#closing.signal.aborted) return;
    const { clock } = this.#parts;
    const last_ms = Math.max(0, ...one.states.map(({ evaluated_at_ms = 0 }) => evaluated_at_ms));
    const gap_ms = last_ms === 0 ? 0 : at_ms - last_ms;
    if (gap_ms > 2 * one.interval_ms) leaveOut(one.states, gap_ms - one.interval_ms);
    await evaluateGroup(one.group, one.states, at_ms, one.parts);
    const isNew = transitionsOf(one.states) !== one.transitions;
    if (isNew || clock.now() - one.stored_at_ms >= ALERT_LIMITS.claim_ms / 2) await this.#store(org_id, one);
    if (isNew) this.#parts.changed(org_id);
  }

  async #store(org_id: string, one: Scheduled): Promise<void> {
    const { store, is_shared, clock } = this.#parts;
    if (!is_shared && !(await this.#own(org_id))) return;
    const state = { file: one.file, group_name: one.group.name, state: storedState(one.group, one.states) };
    if (!(await store.putState(org_id, state, this.#claim()))) {
      this.#orgs.delete(org_id);
      return;
    }
    one.transitions = transitionsOf(one.states);
    one.stored_at_ms = clock.now();
  }

  /** The claim of this process, for other work of only one process. Undefined: another process has it. */
  async claim(org_id: string): Promise<AlertClaim | undefined> {
    const { is_shared } = this.#parts;
    const org = this.#orgs.get(org_id);
    const holds = org !== undefined && (is_shared ? this.#holds(org) : await this.#own(org_id));
    return holds ? this.#claim() : undefined;
  }

  /** A single process takes the claim when it first stores something. */
  async #own(org_id: string): Promise<boolean> {
    const org = this.#orgs.get(org_id);
    if (!org || org.claimed_until > 0) return org !== undefined;
    const claim = { ...this.#claim(), now: Number.MAX_SAFE_INTEGER };
    if (!(await this.#parts.store.claim(org_id, claim))) return false;
    org.claimed_until = claim.until;
    return true;
  }
}

const keyOf = (file: string, group: string): string => JSON.stringify([file, group]);

/** Rules of an app write series of that app only. */
const ofApp = (group: RuleGroup, app: string): RuleGroup => ({
  ...group,
  rules: group.rules.map((rule) => ({ ...rule, labels: { ...rule.labels, app } })),
});

/** Spreads groups over their interval; the same group always has the same offset. */
function offsetOf(key: string, interval_ms: number): number {
  let hash = 0;
  for (let at = 0; at < key.length; at++) hash = (hash * 31 + key.charCodeAt(at)) >>> 0;
  return hash % interval_ms;
}

function nextOf(now: number, interval_ms: number, offset_ms: number): number {
  return Math.floor((now - offset_ms) / interval_ms) * interval_ms + interval_ms + offset_ms;
}

export interface FileGroup {
  file: string;
  app_name: string | null;
  dialect: Dialect;
  group: RuleGroup;
}

/** All groups of an organization, the default ones among them unless it has a file of that name. */
export async function groupsOf(files: readonly StoredRuleFile[]): Promise<FileGroup[]> {
  const own = files.some(({ name }) => name === DEFAULT_FILE) ? [] : DEFAULT_GROUPS;
  const groups = own.map((group): FileGroup => ({ file: DEFAULT_FILE, app_name: null, dialect: "promql", group }));
  for (const { name: file, content, dialect, app_name } of files) {
    // Loaded on first use: with the default rules alone no parser is needed here.
    const { parseRuleFile } = await import("./rules/rule-file.ts");
    const parsed = await parseRuleFile(content, dialect);
    groups.push(...parsed.groups.map((group) => ({ file, app_name, dialect, group })));
  }
  return groups;
}
