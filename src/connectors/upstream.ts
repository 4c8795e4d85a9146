/** Streams a request to the provider and its response back. */
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import type { Agent, Dispatcher } from "undici";
import { messageOf } from "#core/assert.ts";
import { ApiError } from "#core/errors.ts";
import { openAgent } from "#core/guarded-agent.ts";
import { AddressRefused, type Lookup } from "#core/public-addresses.ts";
import { responseHeaders } from "./headers.ts";
import { CONNECTOR_LIMITS as LIMITS } from "./limits.ts";
import { Mask } from "./mask.ts";
import type { Outgoing } from "./placing.ts";

interface Passing {
  method: string;
  outgoing: Outgoing;
  /** Undefined when there is none. */
  body: IncomingMessage | undefined;
  signal: AbortSignal;
}

/** The outcome, for counters. */
export interface Passed {
  status: number;
  bytes_received: number;
  /** The response broke off. */
  broken: boolean;
}

export interface UpstreamOptions {
  /** Whether connectors may reach private addresses. */
  allow_private: boolean;
  lookup?: Lookup;
}

/**
 * Connections to providers, in two pools: one that may reach private addresses must never serve a restricted connector.
 */
export class Upstream {
  readonly #options: UpstreamOptions;
  readonly #agents = new Map<"open" | "guarded", Promise<Agent>>();

  constructor(options: UpstreamOptions) {
    this.#options = options;
  }

  async close(): Promise<void> {
    const agents = await Promise.all(this.#agents.values());
    await Promise.all(agents.map((agent) => agent.destroy()));
  }

  /** Resolves when the response was forwarded. Rejects, with nothing written, when there was none. */
  async pass(passing: Passing, guarded: boolean, answer: ResponseTo): Promise<Passed> {
    const kind = guarded && !this.#options.allow_private ? "guarded" : "open";
    const agent = this.#agents.get(kind) ?? this.#open(kind);
    this.#agents.set(kind, agent);
    const { method, outgoing, body } = passing;
    const { origin, path, headers } = outgoing;
    const relay = new Relay(passing, answer);
    (await agent).dispatch({ origin, path, method, headers, body: body ?? null }, relay);
    return await relay.done;
  }

  async #open(kind: "open" | "guarded"): Promise<Agent> {
    const { lookup } = this.#options;
    const rules = { guarded: kind === "guarded", connect_timeout_ms: LIMITS.connect_timeout_ms, lookup };
    return await openAgent(rules, {
      connections: LIMITS.upstream_connections,
      maxOrigins: LIMITS.upstream_origins,
      headersTimeout: LIMITS.answer_timeout_ms,
      bodyTimeout: LIMITS.silence_timeout_ms,
      maxHeaderSize: LIMITS.upstream_header_bytes,
    });
  }
}

/** The destination of a response. */
interface ResponseTo {
  begin(status: number, headers: [string, string][]): ServerResponse;
}

/** Relays one response, with back-pressure. */
class Relay implements Dispatcher.DispatchHandler {
  readonly #outcome = Promise.withResolvers<Passed>();
  readonly #answer: ResponseTo;
  readonly #mask: Mask;
  readonly #signal: AbortSignal;
  #response: ServerResponse | undefined;
  #status = 0;
  #bytes = 0;
  #masks = true;
  #abort = (): void => {};

  constructor({ outgoing, signal }: Passing, answer: ResponseTo) {
    this.#answer = answer;
    this.#mask = new Mask(outgoing.secrets);
    this.#signal = signal;
  }

  get done(): Promise<Passed> {
    return this.#outcome.promise;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#abort = () => controller.abort(new Error("the caller left"));
    if (this.#signal.aborted) this.#abort();
    else this.#signal.addEventListener("abort", this.#abort, { once: true });
  }

  onResponseStart(controller: Dispatcher.DispatchController, status: number, headers: IncomingHttpHeaders): void {
    if (status < 200) return;
    this.#status = status;
    this.#masks = (headers["content-encoding"] ?? "identity") === "identity";
    const response = this.#answer.begin(
      status,
      responseHeaders(headers, (text) => this.#mask.text(text)),
    );
    response.on("drain", () => controller.resume());
    this.#response = response;
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#bytes += chunk.length;
    const data = this.#masks ? this.#mask.push(chunk) : chunk;
    if (data.length > 0 && this.#response?.write(data) === false) controller.pause();
  }

  onResponseEnd(): void {
    this.#response?.end(this.#masks ? this.#mask.end() : undefined);
    this.#finish(false);
  }

  onResponseError(_controller: Dispatcher.DispatchController, error: Error): void {
    if (this.#response) {
      // A started response can only be aborted.
      this.#response.destroy();
      this.#finish(true);
    } else {
      this.#signal.removeEventListener("abort", this.#abort);
      this.#outcome.reject(upstreamError(error));
    }
  }

  #finish(broken: boolean): void {
    this.#signal.removeEventListener("abort", this.#abort);
    this.#outcome.resolve({ status: this.#status, bytes_received: this.#bytes, broken });
  }
}

const TIMEOUTS = new Set(["UND_ERR_CONNECT_TIMEOUT", "UND_ERR_HEADERS_TIMEOUT", "UND_ERR_BODY_TIMEOUT", "ETIMEDOUT"]);

/** Connection errors as API errors. */
function upstreamError(error: Error & { code?: string }): ApiError {
  const refused = error instanceof AddressRefused ? error : error.cause;
  if (refused instanceof AddressRefused) {
    return new ApiError("address_refused", `the connector's address is refused: ${refused.message}`, {
      hint: "the operator can allow it with HANGAR_GATEWAY_ALLOW_PRIVATE=1",
      facts: { rule: "private addresses" },
    });
  }
  if (TIMEOUTS.has(error.code ?? ""))
    return new ApiError("upstream_timeout", "the provider did not answer in time", { cause: error });
  const [first] = error instanceof AggregateError ? (error.errors as Error[]) : [];
  // Network messages contain hosts and ports, never the request.
  const message = first?.message ?? messageOf(error);
  return new ApiError("upstream_failed", `the provider could not be reached: ${message}`, { cause: error });
}
