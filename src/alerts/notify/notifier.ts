/**
 * Sends notifications of alerts to receivers. The process that has the organization's claim stores each notification
 * with the state of its group before it is sent; after a crash it is sent again rather than lost.
 */
import type { Clock } from "#core/clock.ts";
import { type Ids, randomIds } from "#core/ids.ts";
import type { Log } from "#core/log.ts";
import type { Sealer } from "#core/sealer.ts";
import { ALERT_LIMITS } from "../limits.ts";
import type { RuleRunner } from "../rule-runner.ts";
import { NOTHING, parseConfig } from "./config.ts";
import { dispatch, notified } from "./dispatch.ts";
import { alertmanagerBody } from "./messages.ts";
import type { Sender } from "./sender.ts";
import type { NotificationStore } from "./store.ts";
import type { Message, Notification, NotificationConfig, NotifiedAlert } from "./types.ts";

export interface NotifierParts {
  store: NotificationStore;
  sender: Sender;
  sealer: Sealer;
  tokens: {
    /** Why a token is no longer valid, or undefined. */
    fallen(token_id: string): Promise<string | undefined>;
    isFullAccess(token_id: string): Promise<boolean>;
  };
  /** Organizations whose rules this process evaluates, and their alerts. */
  runner: Pick<RuleRunner, "held" | "slugOf" | "groups" | "claim">;
  external_url(org_slug: string): string;
  clock: Clock;
  log: Log;
}

interface Loaded {
  config: NotificationConfig;
  token_id: string | null;
  updated_at: number;
}

const DAY_MS = 86_400_000;
/** Sealed configurations are bound to their organization. */
export const sealName = (org_id: string): string => `alert config:${org_id}`;

export class Notifier {
  readonly #parts: NotifierParts;
  readonly #ids: Ids;
  readonly #closing = new AbortController();
  readonly #configs = new Map<string, Loaded>();
  /** When an organization's alerts were last sent to each Alertmanager, and which. */
  readonly #sent = new Map<string, { at_ms: number; facts: string }>();
  /** Organizations whose messages are being sent, and those that are looked at again afterwards. */
  readonly #busy = new Map<string, Promise<void>>();
  readonly #again = new Set<string>();
  #wake = new AbortController();
  #running: Promise<void> | undefined;
  #forgot_at = 0;

  constructor(parts: NotifierParts) {
    this.#parts = parts;
    this.#ids = randomIds(parts.clock);
  }

  start(): void {
    this.#running ??= this.#run();
  }

  async close(): Promise<void> {
    this.#closing.abort();
    this.#wake.abort();
    this.#parts.sender.close();
    await this.#running;
    await Promise.allSettled(this.#busy.values());
  }

  /** An alert, a silence or the routes changed. */
  changed(): void {
    this.#wake.abort();
  }

  async #run(): Promise<void> {
    const { clock, log, runner } = this.#parts;
    while (!this.#closing.signal.aborted) {
      this.#wake = new AbortController();
      for (const org_id of runner.held) this.#begin(org_id);
      await this.#forget().catch((error: unknown) => log.warn({ error }, "old notifications could not be deleted"));
      if (this.#closing.signal.aborted) return;
      await clock.sleep(ALERT_LIMITS.notify_ms, this.#wake.signal).catch(() => {});
    }
  }

  /** Each organization by itself: receivers that do not answer keep nobody else waiting. */
  #begin(org_id: string): void {
    if (this.#busy.has(org_id)) {
      this.#again.add(org_id);
      return;
    }
    const work = this.#org(org_id)
      .catch((error: unknown) => this.#parts.log.warn({ error, org_id }, "alerts could not be notified"))
      .finally(() => {
        this.#busy.delete(org_id);
        if (this.#again.delete(org_id)) this.#wake.abort();
      });
    this.#busy.set(org_id, work);
  }

  async #org(org_id: string): Promise<void> {
    const loaded = await this.#config(org_id);
    const groups = this.#parts.runner.groups(org_id);
    if (!loaded || !groups) return;
    const alerts = groups
      .flatMap(({ states }) => states.flatMap(({ active }) => [...active.values()]))
      .filter(({ state }) => state !== "pending");
    const current = alerts.map(notified);
    await this.#store(org_id, loaded.config, current);
    const trusted = await this.#trust(loaded);
    if (typeof trusted === "string") return await this.#holdBack(org_id, trusted);
    await this.#deliver(org_id, loaded.config, trusted);
    await this.#forward(org_id, loaded.config, current, trusted);
  }

  async #config(org_id: string): Promise<Loaded | undefined> {
    const { store, sealer } = this.#parts;
    const stored = await store.config(org_id);
    if (!stored) {
      this.#configs.delete(org_id);
      return undefined;
    }
    const known = this.#configs.get(org_id);
    if (known?.updated_at === stored.updated_at) return known;
    const { config } = await parseConfig(sealer.open(sealName(org_id), stored.content).toString());
    const loaded = { config, token_id: stored.token_id, updated_at: stored.updated_at };
    this.#configs.set(org_id, loaded);
    return loaded;
  }

  /** Whether an operator's token set the addresses; a reason when that token is no longer valid and nothing is sent. */
  async #trust({ token_id }: Loaded): Promise<boolean | string> {
    const { tokens } = this.#parts;
    if (token_id === null) return false;
    const fallen = await tokens.fallen(token_id);
    return fallen ? `nothing is sent: the token that set the receivers ${fallen}` : await tokens.isFullAccess(token_id);
  }

  /** Stores messages and the state of their groups in one write, before they are sent. */
  async #store(org_id: string, config: NotificationConfig, alerts: readonly NotifiedAlert[]): Promise<void> {
    const { store, clock, runner } = this.#parts;
    const now = clock.now();
    const known = new Map((await store.groups(org_id)).map((group) => [group.key, group]));
    const silences = await store.silences(org_id, now);
    const input = { config, alerts, silences, known, now, external_url: this.#url(org_id) };
    const { groups, removed, messages } = dispatch(config.route ? input : { ...input, config: NOTHING });
    const changed = groups.filter((group) => JSON.stringify(known.get(group.key)) !== JSON.stringify(group));
    if (changed.length === 0 && removed.length === 0) return;
    const held = await runner.claim(org_id);
    if (!held) return;
    const notifications = messages.flatMap((message) => this.#notifications(org_id, config, message, now));
    const changes = { groups: changed, removed: removed.filter((key) => known.has(key)), notifications };
    await store.putGroups(org_id, changes, held);
  }

  #notifications(
    org_id: string,
    { receivers }: NotificationConfig,
    { only_resolved, ...message }: Message & { only_resolved: boolean },
    now: number,
  ): Notification[] {
    const receiver = receivers.find(({ name }) => name === message.receiver);
    return (receiver?.integrations ?? []).flatMap(({ send_resolved }, integration) => {
      if (only_resolved && !send_resolved) return [];
      const alerts = send_resolved ? message.alerts : message.alerts.filter(({ firing }) => firing);
      const { receiver: name, group_key } = message;
      const fields = { org_id, receiver: name, integration, group_key, created_at: now, retry_at: now };
      const body = JSON.stringify({ ...message, alerts });
      return [{ ...fields, id: this.#ids.ulid(), body, attempts: 0, last_error: null, delivered_at: null }];
    });
  }

  async #deliver(org_id: string, config: NotificationConfig, trusted: boolean): Promise<void> {
    const { store, clock } = this.#parts;
    // The messages of one group reach one integration in order.
    const blocked = new Set<string>();
    for (const one of await store.pending(org_id, ALERT_LIMITS.notifications_at_once)) {
      if (this.#closing.signal.aborted) return;
      const place = JSON.stringify([one.receiver, one.integration, one.group_key]);
      if (blocked.has(place) || (one.retry_at ?? 0) > clock.now()) {
        blocked.add(place);
        continue;
      }
      if (!(await this.#deliverOne(one, config, trusted))) blocked.add(place);
    }
  }

  async #deliverOne(one: Notification, { receivers }: NotificationConfig, trusted: boolean): Promise<boolean> {
    const { store, sender, clock } = this.#parts;
    const integration = receivers.find(({ name }) => name === one.receiver)?.integrations[one.integration];
    const attempts = one.attempts + 1;
    const problem = integration
      ? await sender.send(integration, JSON.parse(one.body) as Message, one.id, trusted)
      : "there is no such receiver any more";
    if (problem !== undefined && this.#closing.signal.aborted) return false;
    const now = clock.now();
    if (problem === undefined) {
      await store.putDelivery({ id: one.id, attempts, retry_at: null, last_error: null, delivered_at: now });
      return true;
    }
    const is_over = !integration || now - one.created_at > ALERT_LIMITS.delivery_ms;
    const wait = Math.min(ALERT_LIMITS.retry_max_ms, ALERT_LIMITS.retry_ms * 2 ** Math.min(attempts - 1, 10));
    const retry_at = is_over ? null : now + wait;
    await store.putDelivery({ id: one.id, attempts, retry_at, last_error: problem, delivered_at: null });
    return is_over;
  }

  async #holdBack(org_id: string, reason: string): Promise<void> {
    const { store, clock } = this.#parts;
    for (const { id, attempts, last_error } of await store.pending(org_id, ALERT_LIMITS.notifications_at_once))
      if (last_error !== reason)
        await store.putDelivery({ id, attempts, retry_at: clock.now(), last_error: reason, delivered_at: null });
  }

  /** Sends all alerts to the Alertmanagers. They are sent again regularly, so this is not stored. */
  async #forward(
    org_id: string,
    { alertmanagers }: NotificationConfig,
    alerts: readonly NotifiedAlert[],
    trusted: boolean,
  ): Promise<void> {
    const { clock, sender, log } = this.#parts;
    const now = clock.now();
    const facts = JSON.stringify(alerts.map(({ fingerprint, firing }) => [fingerprint, firing]));
    for (const { url, token } of alertmanagers) {
      const key = `${org_id} ${url}`;
      const sent = this.#sent.get(key);
      if (alerts.length === 0 || (sent?.facts === facts && now - sent.at_ms < ALERT_LIMITS.resend_ms)) continue;
      const body = alertmanagerBody(alerts, now + 4 * ALERT_LIMITS.resend_ms, this.#url(org_id));
      const problem = await sender.post(new URL("api/v2/alerts", url.replace(/\/*$/, "/")).href, body, token, trusted);
      if (problem === undefined) this.#sent.set(key, { at_ms: now, facts });
      else log.warn({ org_id, alertmanager: new URL(url).host, problem }, "could not send alerts to an Alertmanager");
    }
  }

  #url(org_id: string): string {
    const { runner, external_url } = this.#parts;
    return external_url(runner.slugOf(org_id));
  }

  async #forget(): Promise<void> {
    const { store, clock } = this.#parts;
    if (clock.now() - this.#forgot_at < DAY_MS / 24) return;
    this.#forgot_at = clock.now();
    await store.forget(clock.now() - ALERT_LIMITS.notifications_kept_ms);
  }
}
