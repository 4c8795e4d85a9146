/**
 * Forwards a machine's request to a provider: authenticates it, checks the policy, adds the credential, and relays.
 *
 *   /v1/gateway/<provider>/<connector id>/<path>[?query]
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Clock } from "#core/clock.ts";
import { ApiError, fail } from "#core/errors.ts";
import type { Exchange } from "#http/route.ts";
import type { AuditLog } from "./audit-log.ts";
import { requestHeaders } from "./headers.ts";
import { CONNECTOR_LIMITS as LIMITS } from "./limits.ts";
import type { OAuthFlow } from "./oauth.ts";
import { pathProblem } from "./paths.ts";
import { type Destination, destinationOf, type Outgoing, place, secretHeader } from "./placing.ts";
import { hasPathRules, judge, type Verdict } from "./policy.ts";
import type { ProviderSetting } from "./providers.ts";
import type { ConnectorService } from "./service.ts";
import { spriteOf } from "./sprite.ts";
import type { ConnectorStore } from "./store.ts";
import type { AccessPolicy, Connection, Sprite } from "./types.ts";
import type { Passed, Upstream } from "./upstream.ts";

interface GatewayParts {
  store: ConnectorStore;
  connectors: ConnectorService;
  oauth: OAuthFlow;
  upstream: Upstream;
  audit_log: AuditLog;
  clock: Clock;
  settings: Readonly<Record<string, ProviderSetting>>;
  /** The platform's own address, for connectors to it. */
  self_url(): string;
}

const TARGET = /^\/v1\/gateway\/([a-z0-9_]+)\/([a-z0-9]+)(\/[^?]*)?(\?.*)?$/;

interface Target {
  provider: string;
  id: string;
  path: string;
  query: string;
}

interface Call {
  connection: Connection;
  target: Target;
  sprite: Sprite;
  method: string;
}

export class Gateway {
  readonly #parts: GatewayParts;
  readonly #in_flight = new Map<string, number>();

  constructor(parts: GatewayParts) {
    this.#parts = parts;
  }

  async relay(exchange: Exchange): Promise<void> {
    const { request, caller } = exchange;
    const sprite = spriteOf(caller);
    const target = readTarget(request);
    const connection = await this.#find(target, sprite);
    await this.#parts.connectors.refuseFallen(connection);
    const call: Call = { connection, target, sprite, method: request.method ?? "GET" };
    this.#admit(call);
    const leave = this.#enter(connection.id);
    try {
      this.#count(call, await this.#pass(call, exchange), request);
    } catch (thrown) {
      if (thrown instanceof ApiError) this.#countFailure(call, thrown);
      throw thrown;
    } finally {
      leave();
    }
  }

  /** The policy's decision about a request of this machine for this path. */
  verdict(policy: AccessPolicy, sprite: Pick<Sprite, "name" | "labels">, path: string, encoded: boolean): Verdict {
    const problem = pathProblem(path, { encoded: encoded && !hasPathRules(policy) });
    if (problem === undefined) return judge(policy, sprite, path);
    return { allowed: false, rule: "canonical path", reason: `the path ${problem}` };
  }

  /** Builds the outgoing request with a valid credential. */
  async compose(
    connection: Connection,
    request: GatewayRequest,
  ): Promise<{ destination: Destination; outgoing: Outgoing }> {
    const { oauth, settings, clock } = this.#parts;
    const fresh = await oauth.fresh(connection);
    const destination = destinationOf(fresh.connection, settings, this.#parts.self_url);
    const { provider, placement } = destination;
    const headers = requestHeaders(request.headers, provider.headers, secretHeader(placement));
    const { region } = connection.provider_info;
    // The response must be uncompressed, so that a credential in it can be masked.
    const own = { ...headers, "accept-encoding": "identity", "user-agent": headers["user-agent"] ?? "hangar-gateway" };
    const input = { method: request.method, path: request.path, query: request.query, headers: own, region };
    return { destination, outgoing: place(destination, fresh.credential, { ...input, now_ms: clock.now() }) };
  }

  async #find({ provider, id }: Target, sprite: Sprite): Promise<Connection> {
    const found = await this.#parts.store.findConnection(id);
    // Another organization's connector looks like a missing one.
    if (found?.org_id !== sprite.org.id || found.provider !== provider)
      return fail("not_found", `there is no connector ${JSON.stringify(id)} of provider ${JSON.stringify(provider)}`);
    return found;
  }

  #admit({ connection, target, sprite, method }: Call): void {
    const { access_policy, provider_info } = connection;
    const { allowed, rule, reason } = this.verdict(
      access_policy,
      sprite,
      target.path,
      provider_info.encoded_paths ?? false,
    );
    if (allowed) return;
    const code = rule === "canonical path" ? "path_not_canonical" : "connector_denied";
    const error = new ApiError(code, reason, { facts: { rule, connection_id: connection.id } });
    const more = { method, path: target.path, status: error.http, rule };
    this.#parts.audit_log.add(this.#parts.audit_log.entry(connection, "denied", `machine ${sprite.name}`, more), {
      denials: 1,
    });
    throw error;
  }

  /** Counts a call of this connector; the returned function ends it. */
  #enter(id: string): () => void {
    const before = this.#in_flight.get(id) ?? 0;
    if (before >= LIMITS.calls_in_flight)
      fail("overloaded", `the connector has ${before} calls in flight (limit calls_in_flight)`, { retry_after_s: 1 });
    this.#in_flight.set(id, before + 1);
    return () => {
      const now = (this.#in_flight.get(id) ?? 1) - 1;
      if (now > 0) this.#in_flight.set(id, now);
      else this.#in_flight.delete(id);
    };
  }

  async #pass({ connection, target, method }: Call, exchange: Exchange): Promise<Passed> {
    const { request, response } = exchange;
    const { destination, outgoing } = await this.compose(connection, { ...target, method, headers: request.headers });
    const disconnected = new AbortController();
    const left = (): void => {
      if (!response.writableFinished) disconnected.abort();
    };
    response.once("close", left);
    request.setTimeout(LIMITS.silence_timeout_ms, () => disconnected.abort());
    const body = hasBody(request) ? request : undefined;
    return await this.#parts.upstream.pass(
      { method, outgoing, body, signal: disconnected.signal },
      destination.guarded,
      {
        begin: (status, headers) => begin(exchange, status, headers),
      },
    );
  }

  #count({ connection, target, sprite, method }: Call, passed: Passed, request: IncomingMessage): void {
    const { audit_log } = this.#parts;
    const { status, bytes_received, broken } = passed;
    const entry = audit_log.entry(connection, "call", `machine ${sprite.name}`, { method, path: target.path, status });
    const bytes_sent = Number(request.headers["content-length"] ?? 0);
    audit_log.add(entry, { calls: 1, failures: broken ? 1 : 0, bytes_received, bytes_sent });
  }

  #countFailure({ connection, target, sprite, method }: Call, error: ApiError): void {
    const { audit_log } = this.#parts;
    const refused = error.code === "address_refused";
    const more = { method, path: target.path, status: error.http, rule: refused ? "private addresses" : error.code };
    const entry = audit_log.entry(connection, refused ? "denied" : "call", `machine ${sprite.name}`, more);
    audit_log.add(entry, refused ? { denials: 1 } : { calls: 1, failures: 1 });
  }
}

interface GatewayRequest {
  method: string;
  path: string;
  query: string;
  headers: IncomingMessage["headers"];
}

function readTarget({ url = "" }: IncomingMessage): Target {
  const [, provider, id, path = "/", query = ""] = TARGET.exec(url) ?? [];
  if (provider === undefined || id === undefined)
    return fail("path_not_canonical", "this is not /v1/gateway/<provider>/<connector id>/<path>");
  return { provider, id, path, query };
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

function begin(
  { response, takeOver, request_id }: Exchange,
  status: number,
  headers: [string, string][],
): ServerResponse {
  takeOver();
  response.writeHead(status, [...headers, ["svc-request-id", request_id]].flat());
  // Headers are sent with the first chunk of the body, or alone when that is late.
  setImmediate(() => response.flushHeaders());
  return response;
}
