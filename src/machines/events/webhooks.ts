import { createHmac } from "node:crypto";
import { messageOf } from "#core/assert.ts";
import type { Bus } from "#core/bus.ts";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { GuardedFetch } from "#core/guarded-agent.ts";
import type { Ids } from "#core/ids.ts";
import type { Log } from "#core/log.ts";
import { AddressRefused } from "#core/public-addresses.ts";
import type { Sealer } from "#core/sealer.ts";
import { Timers } from "#core/timers.ts";
import { logResponse } from "../api/responses.ts";
import { type MachineUpdate, topics } from "../lifecycle/writer.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { Events } from "./events.ts";
import type { Webhook, WebhookStore } from "./webhook-store.ts";

interface WebhookParts {
  store: WebhookStore;
  events: Events;
  bus: Bus<MachineUpdate>;
  sealer: Sealer;
  clock: Clock;
  log: Log;
  tokens: {
    /** Why a token is no longer valid, or undefined. */
    fallen(token_id: string): Promise<string | undefined>;
    isFullAccess(token_id: string): Promise<boolean>;
  };
  /** Setting `webhook_allow_private`: entries of `host[:port]`. */
  allow_private: readonly string[];
  /** Identifies this process among those on one database. */
  runner: string;
}

/** In-memory state of one webhook's delivery. */
interface Delivery {
  hook: Webhook;
  /** End of this process's claim. */
  claimed_until: number;
  busy: boolean;
  again: boolean;
  end: () => void;
}

/**
 * Delivers events to URLs: signed, in order, with retries. The position of each webhook is stored, so no event is
 * skipped while either side is down; after a crash the last batch may be sent twice. Among several processes on one
 * database one claims each webhook; the others take over when its claim expires.
 */
export class Webhooks {
  readonly #parts: WebhookParts;
  readonly #timers: Timers;
  readonly #deliveries = new Map<string, Delivery>();
  readonly #closing = new AbortController();
  readonly #http = new GuardedFetch({ connect_timeout_ms: MACHINE_LIMITS.webhook_timeout_ms });

  constructor(parts: WebhookParts) {
    this.#parts = parts;
    this.#timers = new Timers(parts.clock);
  }

  async start(): Promise<void> {
    await this.#look();
    this.#lookLater();
  }

  /** Adds webhooks that other processes created, drops those they deleted, and retries those without a claim. */
  async #look(): Promise<void> {
    const hooks = new Map((await this.#parts.store.webhooks()).map((hook) => [hook.id, hook]));
    for (const id of this.#deliveries.keys()) if (!hooks.has(id)) this.#stopDelivery(id);
    for (const [id, hook] of hooks) {
      if (this.#deliveries.has(id)) this.#wake(id);
      else this.#startDelivery(hook);
    }
  }

  #lookLater(): void {
    const { log } = this.#parts;
    this.#timers.set("look", MACHINE_LIMITS.webhook_look_ms, () => {
      this.#lookLater();
      this.#look().catch((error: unknown) => log.warn({ error }, "webhooks could not be read"));
    });
  }

  close(): void {
    this.#closing.abort();
    this.#timers.close();
    for (const { end } of this.#deliveries.values()) end();
    void this.#http.close();
  }

  async list(org_id: string): Promise<Webhook[]> {
    return await this.#parts.store.webhooks(org_id);
  }

  /** Creates a webhook and returns its secret, once. Delivers events from now on. */
  async create(
    input: { org_id: string; app_id: string | null; url: string; token_id: string },
    ids: Ids,
  ): Promise<{ hook: Webhook; secret: string }> {
    const { store, events, sealer, clock } = this.#parts;
    const id = ids.short();
    const secret = `whsec_${ids.hex(48)}`;
    const hook: Webhook = {
      id,
      org_id: input.org_id,
      app_id: input.app_id,
      url: checkUrl(input.url),
      secret: sealer.seal(`webhook:${id}`, secret),
      created_at: clock.now(),
      token_id: input.token_id,
      position: await events.end(input.org_id),
      failures: 0,
      retry_at: null,
      last_error: null,
    };
    if (!(await store.insertWebhook(hook, MACHINE_LIMITS.webhooks_per_org))) {
      fail(
        "limit_reached",
        `an organization has at most ${MACHINE_LIMITS.webhooks_per_org} webhooks (limit webhooks_per_org)`,
      );
    }
    // It may be there already, made by the same request before.
    this.#stopDelivery(id);
    this.#startDelivery(hook);
    return { hook, secret };
  }

  async delete(org_id: string, id: string): Promise<void> {
    if (!(await this.#parts.store.deleteWebhook(org_id, id)))
      fail("not_found", `there is no webhook ${JSON.stringify(id)}`);
    this.#stopDelivery(id);
  }

  #startDelivery(hook: Webhook): void {
    const end = this.#parts.bus.subscribe(topics.org(hook.org_id), () => this.#wake(hook.id));
    // The back-off is read with the claim: a timer set by another process does not exist here.
    const fresh = { ...hook, retry_at: null };
    this.#deliveries.set(hook.id, { hook: fresh, claimed_until: 0, busy: false, again: false, end });
    this.#wake(hook.id);
  }

  #stopDelivery(id: string): void {
    this.#deliveries.get(id)?.end();
    this.#deliveries.delete(id);
    this.#timers.cancel(id);
  }

  #wake(id: string): void {
    const courier = this.#deliveries.get(id);
    if (!courier || this.#closing.signal.aborted) return;
    courier.again = true;
    // A webhook in back-off is woken by its timer, not by further events.
    if (courier.busy || courier.hook.retry_at !== null) return;
    courier.busy = true;
    void this.#deliver(courier);
  }

  async #deliver(courier: Delivery): Promise<void> {
    const { log } = this.#parts;
    try {
      while (courier.again && !this.#closing.signal.aborted) {
        courier.again = false;
        if (!(await this.#sendPages(courier))) break;
      }
    } catch (error) {
      log.warn({ error, webhook: courier.hook.id }, "processing a webhook failed");
      this.#retryLater(courier);
    } finally {
      courier.busy = false;
    }
  }

  /** Sends until no event is left. Returns false when it must back off or was deleted. */
  async #sendPages(courier: Delivery): Promise<boolean> {
    const { events, store } = this.#parts;
    for (;;) {
      if (!(await this.#claim(courier))) return false;
      const { hook } = courier;
      const scope = { org_id: hook.org_id, ...(hook.app_id === null ? {} : { app_id: hook.app_id }) };
      const batch = await events.page(scope, hook.position, MACHINE_LIMITS.webhook_batch);
      const cursor = batch.at(-1)?.seq;
      if (cursor === undefined) return true;
      const problem = await this.#post(hook, JSON.stringify({ events: batch.map(logResponse), cursor }));
      if (this.#closing.signal.aborted) return false;
      const progress =
        problem === undefined
          ? { position: cursor, failures: 0, retry_at: null, last_error: null }
          : {
              position: hook.position,
              failures: hook.failures + 1,
              retry_at: this.#retryAt(hook),
              last_error: problem,
            };
      courier.hook = { ...hook, ...progress };
      if (!(await store.putProgress(courier.hook))) {
        this.#stopDelivery(hook.id);
        return false;
      }
      if (problem !== undefined) {
        this.#retryLater(courier);
        return false;
      }
    }
  }

  /** Claims or renews the webhook. A newly claimed one continues from its stored position. */
  async #claim(courier: Delivery): Promise<boolean> {
    const { store, clock, runner } = this.#parts;
    const { webhook_claim_ms } = MACHINE_LIMITS;
    const now = clock.now();
    // Renews early enough for a slow request.
    if (courier.claimed_until - now > webhook_claim_ms / 2) return true;
    const ours = courier.claimed_until > now;
    const until = now + webhook_claim_ms;
    const hook = await store.claim(courier.hook.id, { runner, now, until });
    if (!hook) return false;
    courier.claimed_until = until;
    if (ours) return true;
    const backs_off = hook.retry_at !== null && hook.retry_at > now;
    courier.hook = backs_off ? hook : { ...hook, retry_at: null };
    if (backs_off) this.#retryLater(courier);
    return !backs_off;
  }

  #retryAt({ failures }: Webhook): number {
    const { webhook_delay_ms, webhook_delay_max_ms } = MACHINE_LIMITS;
    return this.#parts.clock.now() + Math.min(webhook_delay_max_ms, webhook_delay_ms * 2 ** Math.min(failures, 20));
  }

  #retryLater(courier: Delivery): void {
    const wait = Math.max(MACHINE_LIMITS.webhook_delay_ms, (courier.hook.retry_at ?? 0) - this.#parts.clock.now());
    this.#timers.set(courier.hook.id, Math.min(wait, MACHINE_LIMITS.webhook_delay_max_ms), () => {
      courier.hook = { ...courier.hook, retry_at: null };
      this.#wake(courier.hook.id);
    });
  }

  /** Returns undefined on success, otherwise the reason of the failure. */
  async #post({ id, url, secret, token_id }: Webhook, body: string): Promise<string | undefined> {
    const { sealer, clock, tokens } = this.#parts;
    const fallen = token_id === null ? undefined : await tokens.fallen(token_id);
    if (fallen) return `nothing is sent: the token that made this webhook ${fallen}`;
    const timestamp = Math.floor(clock.now() / 1000);
    const key = sealer.open(`webhook:${id}`, secret).toString();
    try {
      const guarded = !(await this.#mayPostAnywhere(new URL(url), token_id));
      const init = {
        method: "POST",
        body,
        redirect: "manual",
        signal: AbortSignal.any([this.#closing.signal, AbortSignal.timeout(MACHINE_LIMITS.webhook_timeout_ms)]),
        headers: {
          "content-type": "application/json",
          "svc-webhook-id": id,
          "svc-timestamp": String(timestamp),
          "svc-signature": signature(key, timestamp, body),
        },
      } as const;
      const response = await this.#http.fetch(new URL(url), init, { guarded });
      await response.body?.cancel();
      return response.ok ? undefined : `the answer was ${response.status}`;
    } catch (thrown) {
      const cause = thrown instanceof Error ? thrown.cause : undefined;
      if (cause instanceof AddressRefused)
        return `${cause.message}; the operator can allow it: HANGAR_WEBHOOK_ALLOW_PRIVATE=${new URL(url).host}`.slice(
          0,
          500,
        );
      return `${messageOf(thrown)}${cause instanceof Error ? `: ${cause.message}` : ""}`.slice(0, 500);
    }
  }

  /** Keeps an organization's webhooks from sending to this host or its private networks. */
  async #mayPostAnywhere({ host }: URL, token_id: string | null): Promise<boolean> {
    const { allow_private, tokens } = this.#parts;
    return allow_private.includes(host) || (token_id !== null && (await tokens.isFullAccess(token_id)));
  }
}

/** Returns `v1=` and the HMAC-SHA256 of `<timestamp>.<body>`. Receivers compare it and refuse old timestamps. */
export function signature(secret: string, timestamp: number, body: string): string {
  return `v1=${createHmac("sha256", secret).update(`${timestamp}.${body}`).digest("hex")}`;
}

function checkUrl(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "") {
    fail("invalid_request", "body.url must be an http or https address without a password in it", {
      details: [{ path: "body.url", problem: "is not an address to send to", allowed: "https://…" }],
    });
  }
  return url.href;
}
