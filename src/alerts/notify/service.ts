/** Routes, receivers, silences and deliveries of organizations. */

import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import type { Sealer } from "#core/sealer.ts";
import { ALERT_LIMITS } from "../limits.ts";
import type { LabelMap } from "../rules/types.ts";
import { parseConfig } from "./config.ts";
import { silencedBy } from "./dispatch.ts";
import { matcherText, parseMatcher } from "./matchers.ts";
import { type Notifier, sealName } from "./notifier.ts";
import type { Sender } from "./sender.ts";
import type { NotificationStore } from "./store.ts";
import type { Integration, Message, Notification, NotificationConfig, Silence } from "./types.ts";

interface Parts {
  store: NotificationStore;
  sender: Sender;
  sealer: Sealer;
  notifier: Pick<Notifier, "changed">;
  isFullAccess(token_id: string): Promise<boolean>;
  clock: Clock;
}

export interface ReceiverSummary {
  name: string;
  integrations: string[];
}

export interface ConfigSummary {
  content: string;
  receivers: ReceiverSummary[];
  updated_at: number;
}

export interface SilenceInput {
  matchers: readonly string[];
  starts_at: number | undefined;
  ends_at: number | undefined;
  /** Instead of `ends_at`. */
  duration_ms: number | undefined;
  comment: string;
  created_by: string;
}

const MASK = "<secret>";

export class NotificationService {
  readonly #parts: Parts;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** With every secret masked. */
  async config(org_id: string): Promise<ConfigSummary> {
    const { text, updated_at } = await this.#stored(org_id);
    const { config } = await parseConfig(text);
    return { content: await masked(text), receivers: config.receivers.map(summary), updated_at };
  }

  async #stored(org_id: string): Promise<{ text: string; token_id: string | null; updated_at: number }> {
    const stored = await this.#parts.store.config(org_id);
    if (!stored)
      fail("not_found", "there are no receivers", {
        hint: "hangar alerts receivers FILE sets them, in Alertmanager's format",
      });
    const { content, token_id, updated_at } = stored;
    return { text: this.#opened(org_id, content), token_id, updated_at };
  }

  #opened(org_id: string, content: Uint8Array): string {
    return this.#parts.sealer.open(sealName(org_id), content).toString();
  }

  async putConfig(org_id: string, content: string, token_id: string): Promise<ConfigSummary> {
    const { store, sealer, notifier, clock } = this.#parts;
    const { config, problems } = await parseConfig(content);
    if (content.includes(MASK)) problems.push(`${MASK} stands where a secret was: write the secret itself`);
    if (problems.length > 0) {
      fail("invalid_request", `the receivers cannot be used: ${problems[0]}`, {
        details: problems.map((problem) => ({ path: "body.content", problem })),
      });
    }
    const before = await store.config(org_id);
    const updated_at = Math.max(clock.now(), (before?.updated_at ?? 0) + 1);
    const sealed = sealer.seal(sealName(org_id), content);
    if (!(await store.putConfig({ org_id, content: sealed, token_id, updated_at })))
      fail("not_found", "the organization does not exist");
    notifier.changed();
    return { content: await masked(content), receivers: config.receivers.map(summary), updated_at };
  }

  async deleteConfig(org_id: string): Promise<void> {
    if (!(await this.#parts.store.deleteConfig(org_id))) fail("not_found", "there are no receivers");
    this.#parts.notifier.changed();
  }

  /** Sends a test alert to a receiver now. */
  async test(
    org_id: string,
    name: string,
    { ids, external_url }: { ids: Ids; external_url: string },
  ): Promise<{ integration: string; problem: string | null }[]> {
    const { sender, clock, isFullAccess } = this.#parts;
    const { text, token_id } = await this.#stored(org_id);
    const { config } = await parseConfig(text);
    const receiver = receiverOf(config, name);
    // Who chose the addresses counts, not who tries them: an operator may test what an organization wrote.
    const trusted = token_id !== null && (await isFullAccess(token_id));
    const labels = { alertname: "Test", severity: "none" };
    const annotations = { summary: "This is a test: alerts arrive here", description: "No action is needed." };
    const now = clock.now();
    const alert = { fingerprint: "0000000000000000", labels, annotations, firing: true, starts_at_ms: now };
    const message: Message = {
      receiver: name,
      group_key: "{}:test",
      group_labels: { alertname: "Test" },
      alerts: [{ ...alert, ends_at_ms: undefined }],
      external_url,
    };
    return await Promise.all(
      receiver.integrations.map(async (integration) => {
        const problem = await sender.send(integration, message, ids.ulid(), trusted);
        return { integration: placeOf(integration), problem: problem ?? null };
      }),
    );
  }

  async silences(org_id: string): Promise<Silence[]> {
    return await this.#parts.store.silences(org_id, this.#parts.clock.now());
  }

  /** Ids of the silences that match an alert with these labels. */
  async silencing(org_id: string): Promise<(labels: LabelMap) => string[]> {
    const silences = await this.silences(org_id);
    return (labels) => silencedBy(silences, labels, this.#parts.clock.now());
  }

  async silence(org_id: string, input: SilenceInput, ids: Ids): Promise<Silence> {
    const { store, clock, notifier } = this.#parts;
    const now = clock.now();
    const matchers = input.matchers.map((text, at) => {
      try {
        return matcherText(parseMatcher(text));
      } catch (thrown) {
        return fail("invalid_request", messageOf(thrown), {
          details: [{ path: `body.matchers[${at}]`, problem: messageOf(thrown) }],
        });
      }
    });
    const { comment, created_by, duration_ms } = input;
    const starts_at = Math.max(now, input.starts_at ?? now);
    const ends_at =
      input.ends_at ?? starts_at + (duration_ms ?? fail("invalid_request", "a silence needs `duration` or `ends_at`"));
    if (ends_at <= starts_at) fail("invalid_request", "a silence must end after it starts, and later than now");
    const silence: Silence = {
      id: ids.ulid(),
      org_id,
      matchers,
      starts_at,
      ends_at,
      comment,
      created_by,
      updated_at: now,
    };
    if (!(await store.putSilence(silence, ALERT_LIMITS.silences_per_org, now)))
      fail(
        "limit_reached",
        `an organization has at most ${ALERT_LIMITS.silences_per_org} silences (limit silences_per_org)`,
      );
    notifier.changed();
    return silence;
  }

  async expire(org_id: string, id: string): Promise<void> {
    const { store, clock, notifier } = this.#parts;
    if (!(await store.expireSilence(org_id, id, clock.now())))
      fail("not_found", `there is no silence ${JSON.stringify(id.slice(0, 40))} that still lasts`);
    notifier.changed();
  }

  async notifications(org_id: string, limit: number): Promise<(Notification & { place: string })[]> {
    const { store } = this.#parts;
    const [stored, found] = await Promise.all([store.config(org_id), store.notifications(org_id, limit)]);
    const config = stored && (await parseConfig(this.#opened(org_id, stored.content))).config;
    return found.map((one) => {
      const integration = config?.receivers.find(({ name }) => name === one.receiver)?.integrations[one.integration];
      return { ...one, place: integration ? placeOf(integration) : "removed" };
    });
  }
}

function receiverOf({ receivers }: NotificationConfig, name: string) {
  return (
    receivers.find((one) => one.name === name) ??
    fail(
      "not_found",
      `there is no receiver ${JSON.stringify(name.slice(0, 60))}; there is ${receivers.map((one) => one.name).join(", ")}`,
    )
  );
}

/** The destination of an integration, without secrets. */
const placeOf = (integration: Integration): string =>
  integration.kind === "email"
    ? `email ${integration.to.join(", ")}`
    : `${integration.kind} ${new URL(integration.url).host}`;

const summary = ({ name, integrations }: NotificationConfig["receivers"][number]): ReceiverSummary => ({
  name,
  integrations: integrations.map(placeOf),
});

const SECRETS = new Set(["token", "auth_password", "api_url"]);

async function masked(text: string): Promise<string> {
  const { parseDocument, visit, isScalar } = await import("yaml");
  const document = parseDocument(text);
  visit(document, {
    Pair: (_, pair) => {
      if (isScalar(pair.key) && SECRETS.has(String(pair.key.value))) pair.value = document.createNode(MASK);
    },
    // A webhook's address may hold a secret in its path or query: whoever knows it may write there.
    Scalar: (_, node) => {
      if (typeof node.value === "string")
        node.value = node.value.replace(/^(https?:\/\/[^/?#]+)(?:\/[^?#]|\/?[?#]).*$/s, `$1/${MASK}`);
    },
  });
  return document.toString({ lineWidth: 0 });
}
