/** Sends messages to receivers, to public addresses only unless the operator has allowed others. */
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { GuardedFetch } from "#core/guarded-agent.ts";
import { AddressRefused } from "#core/public-addresses.ts";
import { ALERT_LIMITS } from "../limits.ts";
import { ntfyBody, slackBody, textOf, titleOf, webhookBody } from "./messages.ts";
import { sendMail } from "./smtp.ts";
import type { Integration, Message } from "./types.ts";

interface Parts {
  clock: Clock;
  /** Setting `webhook_allow_private`: entries of `host[:port]`. */
  allow_private: readonly string[];
}

export class Sender {
  readonly #parts: Parts;
  readonly #closing = new AbortController();
  readonly #http = new GuardedFetch({ connect_timeout_ms: ALERT_LIMITS.send_ms });

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  close(): void {
    this.#closing.abort();
    void this.#http.close();
  }

  /** Returns undefined on success, otherwise the reason of the failure. `trusted`: an operator chose the address. */
  async send(integration: Integration, message: Message, id: string, trusted: boolean): Promise<string | undefined> {
    switch (integration.kind) {
      case "webhook": {
        const { url, token, max_alerts } = integration;
        return await this.post(url, webhookBody(message, max_alerts), token, trusted);
      }
      case "slack":
        return await this.post(integration.url, slackBody(message, integration), undefined, trusted);
      case "ntfy": {
        const { url, token } = integration;
        return await this.post(new URL("/", url).href, ntfyBody(message, integration), token, trusted);
      }
      case "email":
        return await this.#mail(integration, message, id, trusted);
    }
  }

  async #mail(
    config: Extract<Integration, { kind: "email" }>,
    message: Message,
    id: string,
    trusted: boolean,
  ): Promise<string | undefined> {
    const mail = {
      subject: titleOf(message),
      text: textOf(message),
      date: new Date(this.#parts.clock.now()),
      message_id: id,
    };
    const guarded = !trusted && !this.#parts.allow_private.includes(`${config.host}:${config.port}`);
    try {
      await sendMail(config, mail, { guarded, timeout_ms: ALERT_LIMITS.send_ms });
      return undefined;
    } catch (thrown) {
      return reasonOf(thrown, `${config.host}:${config.port}`);
    }
  }

  async post(address: string, body: object, token: string | undefined, trusted: boolean): Promise<string | undefined> {
    const url = new URL(address);
    const guarded = !trusted && !this.#parts.allow_private.includes(url.host);
    try {
      const init = {
        method: "POST",
        body: JSON.stringify(body),
        redirect: "manual",
        signal: AbortSignal.any([this.#closing.signal, AbortSignal.timeout(ALERT_LIMITS.send_ms)]),
        headers: {
          "content-type": "application/json",
          "user-agent": "hangar",
          ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        },
      } as const;
      const response = await this.#http.fetch(url, init, { guarded });
      await response.body?.cancel();
      return response.ok ? undefined : `the answer was ${response.status}`;
    } catch (thrown) {
      return reasonOf(thrown, url.host);
    }
  }
}

function reasonOf(thrown: unknown, place: string): string {
  const cause = thrown instanceof Error ? thrown.cause : undefined;
  const refused = [thrown, cause].find((one) => one instanceof AddressRefused);
  if (refused instanceof AddressRefused)
    return `${refused.message}; the operator can allow it: HANGAR_WEBHOOK_ALLOW_PRIVATE=${place}`.slice(0, 500);
  return `${messageOf(thrown)}${cause instanceof Error ? `: ${cause.message}` : ""}`.slice(0, 500);
}
