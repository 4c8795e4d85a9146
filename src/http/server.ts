import type { Socket } from "node:net";
import fastify, { type FastifyInstance, type FastifyReply, type FastifyRequest } from "fastify";
import { CATALOGUE, type ErrorCode } from "#core/error-catalogue.ts";
import { ApiError, errorBody, fail } from "#core/errors.ts";
import { type Ids, randomIds } from "#core/ids.ts";
import { LIMITS } from "#core/limits.ts";
import type { Log } from "#core/log.ts";
import { trackConnections } from "./connections.ts";
import { ambiguity, tooLong } from "./framing.ts";
import { admitBody, type HandlerParts, handler } from "./handler.ts";
import { parseJson } from "./json.ts";
import { prometheusError } from "./prometheus.ts";
import { registryError } from "./registry-error.ts";
import type { BodyLimit, Row, Style } from "./route.ts";
import type { ServerParts } from "./server-parts.ts";
import { spritesError } from "./sprites-error.ts";
import { HTTP_BOUNDS } from "./strict-server.ts";
import { TokenUsage } from "./token-usage.ts";
import { isUploading, passUploads } from "./upload.ts";
import { handleUpgrades, isWebSocketUpgrade } from "./websocket.ts";

export interface Server {
  /** Resolves with the address when requests can be served. */
  listen(host: string, port: number): Promise<{ host: string; port: number }>;
  /** Serves a connection accepted elsewhere. Not before `ready`. */
  accept(connection: Socket): void;
  ready(): Promise<void>;
  /** Drains requests in flight up to the limit, then closes their connections. */
  close(): Promise<void>;
  /** A request without a socket, for tests. */
  inject: FastifyInstance["inject"];
}

const BODY_LIMIT: BodyLimit = { name: "body_bytes", bytes: LIMITS.body_bytes };

/** Passed from hook to hook. */
declare module "fastify" {
  interface FastifyContextConfig {
    style?: Style;
    upload?: boolean;
    body_limit?: BodyLimit;
  }
  interface FastifyRequest {
    hangar: { request_id: string; started: number; rawBody: string };
  }
}

/** The HTTP server: everything that all routes have in common. */
export function createServer(parts: ServerParts): Server {
  const ids = randomIds(parts.clock);
  const lines = parts.rows.filter(({ websocket }) => websocket !== undefined).map(({ path }) => patternOf(path));
  const app = fastify({
    bodyLimit: BODY_LIMIT.bytes,
    // No limit by the router: target_bytes is checked below, names by their modules.
    routerOptions: { ignoreTrailingSlash: true, maxParamLength: LIMITS.header_bytes },
    http: {
      ...HTTP_BOUNDS,
      // Upgrade requests on routes without WebSocket are answered normally.
      shouldUpgradeCallback: (request) =>
        isWebSocketUpgrade(request) && lines.some((path) => path.test(request.url ?? "")),
    },
    keepAliveTimeout: LIMITS.keep_alive_ms,
    // Fastify overrides `http`'s with its own default, which is none.
    requestTimeout: HTTP_BOUNDS.requestTimeout,
    forceCloseConnections: false, // connections.ts does it, including unused ones.
    // The platform's own 503 has the API's format and, after the hooks, a request id.
    return503OnClosing: false,
    exposeHeadRoutes: true,
    frameworkErrors: (error, _request, reply) => void answerError(parts, ids, error, reply),
    clientErrorHandler: (error, socket) => {
      if (error.code !== "ERR_HTTP_REQUEST_TIMEOUT" || !isUploading(socket)) refuseConnection(error, socket, ids);
    },
  });
  const connections = trackConnections(app.server, LIMITS.connections);
  handleUpgrades(app.server, (request, response) => app.routing(request, response));

  let closing = false;
  const ending = new AbortController();
  app.decorateRequest("hangar");
  app.addHook("onRequest", async (request, reply) => {
    request.hangar = { request_id: ids.ulid(), started: parts.clock.monotonic(), rawBody: "" };
    reply.header("svc-request-id", request.hangar.request_id);
    if (parts.customs) reply.headers(parts.customs.headers(request.hangar.request_id));
    if (closing)
      fail("shutting_down", "the platform is shutting down", { retry_after_s: 2, headers: { connection: "close" } });
    if (tooLong(request.raw))
      fail("uri_too_long", `the request target has more than ${LIMITS.target_bytes} bytes (limit target_bytes)`);
    const problem = ambiguity(request.raw);
    if (problem) fail("malformed_http", problem, { headers: { connection: "close" } });
  });
  app.addHook("onResponse", async (request, reply) => logRequest(parts, request, reply));
  app.setErrorHandler((error, _request, reply) => answerError(parts, ids, error, reply));
  readJsonBodies(app, { any_type: false });
  parts.dashboard?.serve(app);
  passUploads(app);
  addRows(app, { ...parts, usage: new TokenUsage() }, ending.signal);

  return {
    async listen(host, port) {
      await app.listen({ host, port });
      const address = app.server.address();
      return typeof address === "object" && address ? { host: address.address, port: address.port } : { host, port };
    },
    accept: (connection) => void app.server.emit("connection", connection),
    async ready() {
      await app.ready();
      // Node checks slow requests only once a server listens, which this one, given its connections, never does.
      app.server.emit("listening");
    },
    async close() {
      closing = true;
      // Waits and streams end now; other requests may finish.
      ending.abort();
      // Unreferenced: it must not keep the process alive.
      const cut = setTimeout(() => connections.closeAll(), LIMITS.shutdown_ms).unref();
      connections.closeIdle();
      await app.close();
      clearTimeout(cut);
    },
    inject: app.inject.bind(app) as FastifyInstance["inject"],
  };
}

function addRows(app: FastifyInstance, parts: HandlerParts, ending: AbortSignal): void {
  const methods = new Map<string, Set<string>>();
  // Relayed requests are not read here: their routes have a body parser that reads nothing.
  void app.register(async (relays) => {
    relays.removeAllContentTypeParsers();
    relays.addContentTypeParser("*", (_request, _body, done) => done(null));
    for (const row of parts.rows) if (row.relay) addRow(relays, row, parts, ending);
  });
  void app.register(async (lenient) => {
    readJsonBodies(lenient, { any_type: true });
    for (const row of parts.rows) if (row.any_type) addRow(lenient, row, parts, ending);
  });
  for (const row of parts.rows) {
    if (!row.relay && !row.any_type) addRow(app, row, parts, ending);
    const shape = row.path.replaceAll(/:\w+/g, ":x");
    methods.set(shape, (methods.get(shape) ?? new Set()).add(row.method));
  }
  const patterns = [...methods].map(([shape, names]) => ({ pattern: patternOf(shape), names }));
  app.setNotFoundHandler((request) => {
    const path = request.url.split("?")[0] ?? "";
    const known = patterns.find(({ pattern }) => pattern.test(path));
    if (!known) fail("not_found", `no such route: ${path}`, { hint: "GET /openapi.json lists every path" });
    const allow = [...known.names].sort().join(", ");
    fail("method_not_allowed", `${request.method} is not allowed for ${path}; allowed: ${allow}`, {
      headers: { allow },
    });
  });
}

/** Pattern of a row's path, with or without a query. */
function patternOf(path: string): RegExp {
  const shape = path.replaceAll(".", "\\.").replaceAll(/:\w+/g, "[^/?]+").replace("*", "[^?]*");
  return new RegExp(`^${shape}/?(\\?|$)`);
}

function addRow(app: FastifyInstance, row: Row, parts: HandlerParts, ending: AbortSignal): void {
  // The rest of a path may be empty, which the router does not match.
  const urls = row.path.endsWith("/*") ? [row.path, row.path.slice(0, -2)] : [row.path];
  const { around } = parts;
  const own = { ...parts, guard: parts.guardOf?.(row) ?? parts.guard };
  const work = handler(row, own, ending);
  const { body_limit = BODY_LIMIT } = row;
  for (const url of urls) {
    app.route({
      method: row.method,
      url,
      bodyLimit: body_limit.bytes,
      config: {
        body_limit,
        ...(row.style ? { style: row.style } : {}),
        upload: row.upload !== undefined,
      },
      preParsing: (request, reply) => admitBody(row, own, { request, reply, most: body_limit.bytes }),
      handler: around ? (request, reply) => around(row, reply, () => work(request, reply)) : work,
    });
  }
}

/** Content types in which curl and other clients send JSON. Others are refused. */
const JSON_TYPES = /^(application\/json|application\/x-www-form-urlencoded|text\/plain|application\/[\w.-]+\+json)\b/;

function readJsonBodies(app: FastifyInstance, { any_type }: { any_type: boolean }): void {
  app.removeAllContentTypeParsers();
  app.addContentTypeParser("*", { parseAs: "string" }, (request, body, done) => {
    const text = body as string;
    const type = request.headers["content-type"] ?? "";
    try {
      if (type !== "" && !any_type && !JSON_TYPES.test(type) && text !== "") {
        fail(
          "unsupported_media_type",
          `bodies of type ${type.slice(0, 100)} are not supported here; send application/json`,
        );
      }
      request.hangar.rawBody = text;
      const form = request.routeOptions.config.style === "prometheus";
      done(null, form || text.trim() === "" ? undefined : parseJson(text));
    } catch (thrown) {
      done(thrown as Error);
    }
  });
}

/** Fastify's errors in the API's format. */
const FASTIFY_ERRORS: Record<string, [ErrorCode, (limit: BodyLimit) => string]> = {
  FST_ERR_CTP_BODY_TOO_LARGE: [
    "payload_too_large",
    ({ name, bytes }) => `the body has more than the limit ${name} allows (${bytes} bytes)`,
  ],
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: ["malformed_http", () => "the body is not as long as Content-Length says"],
  FST_ERR_CTP_INVALID_MEDIA_TYPE: [
    "unsupported_media_type",
    () => "the Content-Type cannot be read; send application/json",
  ],
  FST_ERR_BAD_URL: ["malformed_http", () => "the path holds a broken percent-encoding"],
};

/** Errors of Node's parser in the API's format. */
const PARSER_ERRORS: Record<string, [ErrorCode, string]> = {
  ERR_HTTP_REQUEST_TIMEOUT: ["request_timeout", "the request did not arrive completely in time"],
  HPE_HEADER_OVERFLOW: [
    "headers_too_large",
    `the headers have more than ${LIMITS.header_bytes} bytes (limit header_bytes)`,
  ],
};

function toApiError(log: Log, thrown: unknown, request_id: string, limit = BODY_LIMIT): ApiError {
  if (thrown instanceof ApiError) return thrown;
  const known = FASTIFY_ERRORS[String((thrown as { code?: unknown } | null)?.code)];
  if (known) return new ApiError(known[0], known[1](limit), { cause: thrown });
  // The client disconnected while sending: no response is needed.
  if ((thrown as { code?: string } | null)?.code === "ECONNRESET")
    return new ApiError("request_timeout", "the request broke off");
  log.error({ error: thrown, request_id }, "a bug: an error that no one expected");
  return new ApiError("internal", `internal error; see request ${request_id} in the log`, {
    hint: `search the platform's log for ${request_id}`,
  });
}

function answerError(
  { log, customs }: Pick<ServerParts, "log" | "customs">,
  ids: Ids,
  thrown: unknown,
  reply: FastifyReply,
): FastifyReply {
  const { hangar, routeOptions, url = "" } = reply.request as Partial<FastifyRequest>;
  const request_id = hangar?.request_id ?? ids.ulid();
  const error = toApiError(log, thrown, request_id, routeOptions?.config.body_limit);
  const { headers, retry_after_s } = error.extras;
  if (headers) reply.headers(headers);
  if (retry_after_s !== undefined) reply.header("retry-after", String(retry_after_s));
  reply.header("svc-request-id", request_id).code(error.http);
  if (routeOptions?.config.style === "git")
    return reply.header("content-type", "text/plain; charset=utf-8").serializer(String).send(plainText(error));
  const said = customs?.error(errorBody(error, request_id), error.http, url);
  return reply
    .code(said?.http ?? error.http)
    .header("content-type", "application/json; charset=utf-8")
    .serializer(JSON.stringify)
    .send(said?.body ?? styled(routeOptions?.config.style ?? styleOf(url), error, request_id));
}

/** Also what is not there has its API's errors. */
const styleOf = (url: string): Style | undefined => (/^\/v1\/sprites\b/.test(url) ? "sprites" : undefined);

const plainText = ({ message, extras: { hint } }: ApiError): string => `${message}\n${hint ? `${hint}\n` : ""}`;

function styled(style: Style | undefined, error: ApiError, request_id: string): object {
  const body = errorBody(error, request_id);
  if (style === "registry") return registryError(body);
  if (style === "sprites") return spritesError(body);
  return style === "prometheus" ? prometheusError(body, error.http) : body;
}

/** A request that the parser refuses gets a hand-written response, and the connection closes. */
function refuseConnection(error: Error & { code?: string }, socket: Socket, ids: Ids): void {
  if (!socket.writable || error.code === "ECONNRESET") return void socket.destroy();
  const [code, text] = PARSER_ERRORS[error.code ?? ""] ?? ["malformed_http", "this is not HTTP as it should be"];
  const request_id = ids.ulid();
  const body = JSON.stringify(errorBody(new ApiError(code, text), request_id));
  socket.end(
    `HTTP/1.1 ${CATALOGUE[code].http} ${code}\r\ncontent-type: application/json; charset=utf-8\r\n` +
      `svc-request-id: ${request_id}\r\ncontent-length: ${Buffer.byteLength(body)}\r\nconnection: close\r\n\r\n${body}`,
  );
}

function logRequest({ log, clock }: ServerParts, request: FastifyRequest, reply: FastifyReply): void {
  const { request_id, started } = request.hangar;
  // The path only: a query may contain secrets.
  const path = request.url.split("?")[0];
  const ms = Math.round((clock.monotonic() - started) * 10) / 10;
  log.info({ request_id, method: request.method, path, status: reply.statusCode, ms }, "request");
}
