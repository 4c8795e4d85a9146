/** Sends a batch to a drain's receiver, to public addresses only unless the operator has allowed others. */
import { GuardedFetch } from "#core/guarded-agent.ts";
import { MACHINE_LIMITS } from "../../limits.ts";
import { sendByHttp } from "./http-sender.ts";
import { sendBySyslog, syslogPlace } from "./syslog-sender.ts";
import type { DrainKind, DrainLine, DrainTarget, Outcome } from "./types.ts";

export interface Sending {
  kind: DrainKind;
  target: DrainTarget;
  /** An operator chose the address. */
  trusted: boolean;
}

export class DrainSender {
  /** Setting `webhook_allow_private`: entries of `host[:port]`. */
  readonly #allow_private: readonly string[];
  readonly #http = new GuardedFetch({ connect_timeout_ms: MACHINE_LIMITS.drain_timeout_ms });
  readonly #closing = new AbortController();

  constructor(allow_private: readonly string[]) {
    this.#allow_private = allow_private;
  }

  async send({ kind, target, trusted }: Sending, lines: readonly DrainLine[]): Promise<Outcome> {
    const options = { guarded: !trusted && !this.#isAllowed(kind, target), signal: this.#closing.signal };
    if (kind === "syslog") return await sendBySyslog(target, lines, options);
    return await sendByHttp(this.#http, { kind, target }, lines, options);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await this.#http.close();
  }

  #isAllowed(kind: DrainKind, { url }: DrainTarget): boolean {
    if (kind !== "syslog") return this.#allow_private.includes(new URL(url).host);
    const { host, port } = syslogPlace(url);
    return this.#allow_private.includes(`${host}:${port}`);
  }
}
