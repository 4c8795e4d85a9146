/**
 * The node's own HTTP server. A node runs beside an application and has few routes, all in one table.
 *
 *   GET  /events            the event stream of the specification
 *   GET  /info              what this node is
 *   GET  /metrics           for Prometheus
 *   GET  /wait?db=          until a transaction is here
 *   GET  /export?name=      a database as a file
 *   POST /import?name=      a file as a database (on the primary)
 *   GET  /backups           what this node's own backup can restore
 *   POST /restore?name=     a database of that backup, as of a moment (on the primary)
 *   POST /promote           make this node primary, without losing anything
 *   POST /lock, /unlock     let applications of a replica write for a while; /halt, /tx, /unhalt: the primary's side of it
 *   POST /positions, /stream, /place, /ack, /handoff   between nodes
 *
 * All but the first four need authentication as a node of the cluster, or with its key.
 * A node without credentials listens on loopback only (see commands.ts), and answers no web page.
 */
import type { IncomingMessage, Server, ServerResponse } from "node:http";
import { messageOf } from "#core/assert.ts";
import { isoTime } from "#core/clock.ts";
import { ApiError, errorBody, fail } from "#core/errors.ts";
import type { ObjectStore } from "#core/objects.ts";
import { trackConnections } from "#http/connections.ts";
import { createServer } from "#http/node-http.ts";
import { HTTP_BOUNDS, refuseBytes, strictly } from "#http/strict-server.ts";
import { uploads } from "#http/upload.ts";
import { BODY_HEADER, type Credentials, headerOf, PROOF_HEADER, sha256 } from "../credentials/credentials.ts";
import type { PartialSnapshot } from "../database/partial-snapshot.ts";
import { Snapshot } from "../database/snapshot.ts";
import { REPLICATION_LIMITS } from "../limits.ts";
import { formatPosition, type Position, parsePosition } from "../position.ts";
import { type AskedPositions, knownPositions } from "./divergence.ts";
import { EVENTS_HEADERS } from "./events.ts";
import { HALT_ROUTES, type HaltParts, LARGE_BODIES } from "./halt-routes.ts";
import { importDatabase } from "./import.ts";
import type { ReplicationNode } from "./node.ts";
import { PeerRefused, readBody, TERM_HEADER } from "./peer.ts";
import { ownBackups, restoreOwn } from "./restore-request.ts";
import { roomOrEnd } from "./room-or-end.ts";
import type { Hello } from "./streams.ts";
import { waitFor } from "./wait.ts";

export interface ServerParts extends HaltParts {
  node: ReplicationNode;
  credentials?: Credentials;
  /** Where the node backs up to. */
  backup?: ObjectStore;
  /** Makes this node primary. Fails with `conflict` when it cannot be. */
  promote(how: { force: boolean }): Promise<void>;
  /** Hands the primary role to a node that has everything. */
  handOff(node: string): Promise<void>;
  log(message: string): void;
}

interface Call extends ServerParts {
  request: IncomingMessage;
  response: ServerResponse;
  url: URL;
  /** The whole body, of routes that take JSON. */
  body: Buffer;
}

interface Route {
  /** Needs no authentication. */
  open: boolean;
  /** The handler reads the body itself. */
  streams_body?: true;
  handle(call: Call): void | Promise<void>;
}

const ROUTES: Record<string, Record<string, Route>> = {
  "/events": { GET: { open: true, handle: events } },
  "/info": { GET: { open: true, handle: ({ node, response }) => answer(response, info(node)) } },
  "/metrics": { GET: { open: true, handle: metrics } },
  "/wait": { GET: { open: true, handle: async (call) => answer(call.response, await waitFor(call)) } },
  "/export": { GET: { open: false, handle: exportDatabase } },
  "/import": { POST: { open: false, streams_body: true, handle: importFile } },
  "/backups": { GET: { open: false, handle: async (call) => answer(call.response, await ownBackups(call.backup)) } },
  "/restore": { POST: { open: false, handle: restoreDatabase } },
  "/promote": { POST: { open: false, handle: promote } },
  "/handoff": { POST: { open: false, handle: handOff } },
  "/positions": { POST: { open: false, handle: positions } },
  "/stream": { POST: { open: false, handle: stream } },
  "/ack": { POST: { open: false, handle: acknowledge } },
  "/place": { POST: { open: false, handle: place } },
  ...Object.fromEntries(
    Object.entries(HALT_ROUTES).map(([path, handler]) => [path, { POST: haltRoute(path, handler) }]),
  ),
};

function haltRoute(path: string, handler: (typeof HALT_ROUTES)[string]): Route {
  const handle = async (call: Call): Promise<void> => answer(call.response, await handler(call));
  return { open: false, handle, ...(LARGE_BODIES.has(path) ? { streams_body: true } : {}) };
}

export function createNodeServer(parts: ServerParts): Server {
  const listener = strictly((request, response) => {
    serve(parts, request, response).catch((error: unknown) => refuse(parts, response, error));
  });
  const server = createServer({ ...HTTP_BOUNDS, keepAliveTimeout: REPLICATION_LIMITS.keep_alive_ms }, listener);
  server.on("clientError", refuseBytes);
  trackConnections(server, REPLICATION_LIMITS.connections);
  return server;
}

async function serve(parts: ServerParts, request: IncomingMessage, response: ServerResponse): Promise<void> {
  const url = new URL(request.url ?? "/", "http://node");
  const methods = ROUTES[url.pathname];
  if (!methods) fail("not_found", `there is no ${url.pathname} here`);
  const method = request.method ?? "GET";
  const route = methods[method] ?? (method === "HEAD" ? methods["GET"] : undefined);
  const allow = Object.keys(methods).join(", ");
  if (!route) fail("method_not_allowed", `${url.pathname} takes ${allow}`, { headers: { allow } });
  const body = route.streams_body ? Buffer.alloc(0) : await readBody(request);
  const call: Call = { ...parts, request, response, url, body };
  if (!route.open) await admit(call, route);
  await route.handle(call);
}

/** Authenticates the caller, and proves this node's identity in return. */
async function admit({ node, credentials, request, response, url, body }: Call, route: Route): Promise<void> {
  const term = node.role.kind === "primary" ? node.role.term : 0;
  response.setHeader(TERM_HEADER, term);
  if (!credentials) {
    refuseWebPages(request, node.hostname);
    return;
  }
  // A streamed body is verified against its signed digest when it has arrived.
  const body_sha256 = route.streams_body ? (headerOf(request.headers, BODY_HEADER) ?? "") : sha256(body);
  const signedRequest = { method: request.method ?? "GET", path: `${url.pathname}${url.search}`, body_sha256 };
  const nonce = await credentials.verify(signedRequest, request.headers, node.clock.now());
  if (nonce === undefined) {
    fail("unauthorized", `${url.pathname} must be signed with the key of the cluster, or by a machine of it`);
  }
  response.setHeader(PROOF_HEADER, await credentials.prove(nonce, term));
}

/** Web pages can send requests to loopback; they are recognized by Origin or Host. */
function refuseWebPages({ headers }: IncomingMessage, hostname: string): void {
  const host = headers.host ?? "";
  const local = host === hostname || /^(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?$/.test(host);
  if (local && headers.origin === undefined) return;
  fail("forbidden", "without a key this is answered to programs on this machine only; see --key-file");
}

function refuse({ log }: ServerParts, response: ServerResponse, thrown: unknown): void {
  const known = thrown instanceof ApiError ? thrown : undefined;
  const too_large = thrown instanceof PeerRefused && thrown.status === 413;
  const error = known ?? new ApiError(too_large ? "payload_too_large" : "internal", messageOf(thrown));
  if (!known && !too_large) log(`request failed: ${messageOf(thrown)}`);
  if (response.headersSent) {
    response.destroy();
    return;
  }
  const text = `${JSON.stringify(errorBody(error, ""))}\n`;
  response.writeHead(error.http, { "content-type": "application/json", ...error.extras.headers }).end(text);
}

function answer(response: ServerResponse, value: unknown): void {
  response.writeHead(200, { "content-type": "application/json" }).end(`${JSON.stringify(value)}\n`);
}

function info(node: ReplicationNode): object {
  const { isPrimary, hostname } = node.events.status;
  const problems = [...node.directory.problems];
  return {
    node: node.id,
    isPrimary,
    hostname: node.hostname,
    ...(hostname === undefined ? {} : { primary: { hostname } }),
    term: node.term,
    path: node.dir,
    lagMs: node.lag_ms,
    replicas: node.streams.replicas.map((replica) => ({ node: replica.node, hostname: replica.hostname })),
    databases: node.directory.positions(),
    ...node.acknowledgements.info(),
    ...(node.proxy === undefined ? {} : { proxy: node.proxy.url }),
    refused: Object.fromEntries(
      problems.filter(([, { state }]) => state !== "kept").map(([name, { reason }]) => [name, reason]),
    ),
    states: Object.fromEntries(
      problems.map(([name, { state, reason, since_ms }]) => [name, { state, reason, since: isoTime(since_ms) }]),
    ),
  };
}

function events({ node, request, response }: Call): void {
  // A HEAD request must not wait for an endless body.
  if (request.method === "HEAD") response.writeHead(200, EVENTS_HEADERS).end();
  else node.events.subscribe(response);
}

function metrics({ node, response }: Call): void {
  response.writeHead(200, { "content-type": "text/plain; version=0.0.4" }).end(node.metrics.text());
}

function nameOf({ url }: Call): string {
  const name = url.searchParams.get("name");
  if (name) return name;
  fail("invalid_request", "name is missing", { details: [{ path: "query.name", problem: "is missing" }] });
}

async function exportDatabase(call: Call): Promise<void> {
  const { node, response } = call;
  const name = nameOf(call);
  const database = node.directory.get(name);
  if (!database) fail("not_found", `there is no database ${name}`);
  let snapshot = Snapshot.take(database);
  for (let tries = 0; !snapshot && tries < 1000; tries++) {
    await node.clock.sleep(1);
    snapshot = Snapshot.take(database);
  }
  if (!snapshot) fail("overloaded", `${name} is being written to continuously`, { retry_after_s: 1 });
  try {
    response.writeHead(200, {
      "content-type": "application/vnd.sqlite3",
      "content-length": snapshot.bytes,
      "hangar-position": formatPosition(snapshot.position),
    });
    for (const bytes of snapshot.file()) {
      if (response.destroyed) return;
      if (!response.write(bytes)) await roomOrEnd(response);
    }
    response.end();
  } finally {
    snapshot.close();
  }
}

async function importFile(call: Call): Promise<void> {
  const { node, request, response } = call;
  // A large upload has only a stall timeout.
  request.setTimeout(REPLICATION_LIMITS.import_stall_ms, () => request.destroy(new Error("the file stopped coming")));
  const over = uploads(request.socket);
  try {
    const sha256_said = headerOf(request.headers, BODY_HEADER);
    const position = await node.during(() => importDatabase(node, nameOf(call), request, sha256_said));
    answer(response, { position: formatPosition(position) });
  } finally {
    over();
  }
}

async function restoreDatabase({ node, backup, url, response }: Call): Promise<void> {
  answer(response, await node.during(() => restoreOwn(node, backup, url.searchParams)));
}

async function promote({ response, promote: become, node, url }: Call): Promise<void> {
  await become({ force: url.searchParams.get("force") === "true" });
  answer(response, info(node));
}

async function handOff({ body, response, handOff: give }: Call): Promise<void> {
  const { node } = object(body);
  if (typeof node !== "string") fail("invalid_request", "node must be the id of a replica");
  await give(node);
  answer(response, { ok: true });
}

function positions({ node, body, response }: Call): void {
  const { databases, checksums = {} } = object(body);
  if (typeof databases !== "object" || databases === null) fail("invalid_request", "databases must be an object");
  if (typeof checksums !== "object" || checksums === null) fail("invalid_request", "checksums must be an object");
  answer(response, knownPositions(node.directory, { databases, checksums } as AskedPositions));
}

function stream({ node, body, response }: Call): void {
  node.serve(readHello(object(body)), response);
}

/** A replica reports its position of one database again. */
function place({ node, body, response }: Call): void {
  const { node: replica, name, position: text } = object(body);
  const position = parsePosition(String(text));
  if (typeof replica !== "string" || typeof name !== "string" || (text !== undefined && !position)) {
    fail("invalid_request", "the body must have node, name and, unless a snapshot is wanted, position");
  }
  if (!node.streams.place(replica, name, position)) fail("conflict", `replica ${replica} is not connected`);
  answer(response, { ok: true });
}

function readHello(value: Record<string, unknown>): Hello {
  const { node, hostname, term, databases, skip, candidate, partial } = value;
  if (typeof node !== "string" || typeof hostname !== "string" || typeof term !== "number") {
    fail("invalid_request", "the body must have node, hostname, term and databases");
  }
  return {
    node,
    hostname,
    term,
    databases: readPositions(databases),
    skip: new Set(Array.isArray(skip) ? skip.map(String) : []),
    candidate: candidate !== false,
    partial: readPartials(partial),
  };
}

/** Invalid entries are ignored: the snapshot is then sent whole. */
function readPartials(partials: unknown): Map<string, PartialSnapshot> {
  const good = (value: unknown): value is PartialSnapshot => {
    const { page_size, blocks } = (value ?? {}) as Partial<PartialSnapshot>;
    return typeof page_size === "number" && Array.isArray(blocks);
  };
  const entries = Object.entries((partials ?? {}) as Record<string, unknown>);
  return new Map(entries.flatMap(([name, value]) => (good(value) ? [[name, value]] : [])));
}

function readPositions(databases: unknown): Map<string, Position> {
  const known = new Map<string, Position>();
  for (const [name, text] of Object.entries((databases ?? {}) as Record<string, unknown>)) {
    const position = parsePosition(String(text));
    if (!position) fail("invalid_request", `${name}: ${String(text)} is not a position`);
    known.set(name, position);
  }
  return known;
}

/** A replica reports what it has on disk. */
function acknowledge({ node, body, response }: Call): void {
  const { node: replica, term, databases } = object(body);
  if (typeof replica !== "string" || typeof term !== "number") {
    fail("invalid_request", "the body must have node, term and databases");
  }
  node.acknowledgements.take(replica, term, readPositions(databases));
  answer(response, { ok: true });
}

function object(body: Buffer): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(body.toString("utf8"));
    if (typeof value === "object" && value !== null) return value as Record<string, unknown>;
  } catch {
    // Answered below.
  }
  return fail("malformed_json", `the body must be a JSON object of at most ${REPLICATION_LIMITS.body_bytes} bytes`);
}
