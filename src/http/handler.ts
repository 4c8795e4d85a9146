import type { ServerResponse } from "node:http";
import { finished } from "node:stream";
import type { FastifyReply, FastifyRequest } from "fastify";
import { type Ids, randomIds } from "#core/ids.ts";
import { LIMITS } from "#core/limits.ts";
import { confirmPrefetched, withPrefetched } from "#core/prefetched.ts";
import type { Admitted, Caller, Target } from "./access.ts";
import { admittedTo, callerOf, type Input } from "./admission.ts";
import type { Recorded } from "./idempotency.ts";
import { checkedInput } from "./input.ts";
import { pageHeaders, readPage, withNext } from "./list-page.ts";
import { PAGE_HEADERS } from "./pages.ts";
import type { AnyCall, Exchange, Row } from "./route.ts";
import type { ServerParts } from "./server-parts.ts";
import { Sessions } from "./sessions.ts";
import { type StreamItem, sendStream } from "./stream.ts";
import type { TokenUsage } from "./token-usage.ts";
import { NO_UPLOAD, uploadOf, uploads } from "./upload.ts";
import { acceptsWebSocket, acceptWebSocket, CLOSE_CODES, type WebSocketSession } from "./websocket.ts";

/** `usage` is shared by all rows of a server. */
export type HandlerParts = ServerParts & { usage: TokenUsage };
type Handler = (request: FastifyRequest, reply: FastifyReply) => Promise<FastifyReply>;

/**
 * Handles one request: authenticate, validate, authorize, then the row's handler. In this order an anonymous caller
 * learns nothing about the API, and an authenticated one gets all problems at once.
 */
export function handler(row: Row, parts: HandlerParts, ending: AbortSignal): Handler {
  const sessions = new Sessions(parts.clock);
  const random = randomIds(parts.clock);
  return prefetching(row, parts, async (request, reply) => {
    const open = row.access === "open";
    const caller = await callerOf(row, parts, request);
    if (!open && parts.rate) reply.headers(parts.rate.acquire(caller.token_id));
    if (!open) parts.usage.connect(caller, request.raw.socket);
    if (row.relay) return await relayed(row, request, reply, { caller, parts, sessions });
    const input = readInput(row, request, reply);
    const admitted = await admittedTo(row, parts, caller, input);
    const page = readPage(row, input.query);
    const facts = { ...admitted, caller, upload: NO_UPLOAD, page };
    const long = { request, reply, input, facts: { ...facts, ids: random } };
    if (await handleLong(row, long, { parts, sessions, ending })) return reply;
    const call = (ids: Ids): AnyCall => callOf(request, reply, input, { ...facts, ids, ending });
    const work = async (ids: Ids): Promise<Recorded> => recordable(await run(row, call(ids)));
    const key = request.headers["idempotency-key"];
    if (!isRepeatable(row) || typeof key !== "string") {
      const outcome = await run(row, call(random));
      await confirmPrefetched();
      return send(row, reply.headers(pageHeaders(page, request.url)), outcome);
    }
    const who = { caller: caller.fingerprint ?? caller.token_id, key, recorded: !row.credential };
    return send(row, reply, await once(parts, request, reply, who, work));
  });
}

/** Prefetches the rows of the request, where the database is remote. */
function prefetching(row: Row, { guard }: HandlerParts, work: Handler): Handler {
  if (!guard.prefetch || row.access === "open" || row.access === "machine") return work;
  const prefetch = guard.prefetch.bind(guard);
  return async (request, reply) => {
    const { org_slug } = request.query as Target;
    const intent = { writes: row.method !== "GET", confirms: isConfirmed(row, request) };
    const wanted = { org_slug, ...(request.params as Target), ...intent };
    const prefetched = prefetch(request.headers.authorization, wanted);
    return await withPrefetched(prefetched, () => work(request, reply));
  };
}

/**
 * Called before a body is read. Small bodies are always read; a larger one needs a valid token, and its memory is
 * limited.
 */
export async function admitBody(
  row: Row,
  parts: HandlerParts,
  { request, reply, most }: { request: FastifyRequest; reply: FastifyReply; most: number },
): Promise<void> {
  const { "content-length": length, "transfer-encoding": encoding } = request.headers;
  const bytes = encoding === undefined ? Number(length ?? 0) : most;
  // A body past the route's own limit is refused unread.
  if (row.relay || row.upload || bytes <= LIMITS.body_unknown_bytes || bytes > most) return;
  const over = parts.usage.body(await callerOf(row, parts, request), bytes);
  finished(reply.raw, over);
}

interface Serving {
  parts: HandlerParts;
  sessions: Sessions;
  ending: AbortSignal;
}

interface RouteCall {
  request: FastifyRequest;
  reply: FastifyReply;
  input: Input;
  facts: CallFacts;
}

type CallFacts = Admitted & { caller: Caller; ids: Ids; upload: AnyCall["upload"]; page: AnyCall["page"] };

/** Relays bodies and responses of any length, until the caller loses access. */
async function relayed(
  row: Row,
  request: FastifyRequest,
  reply: FastifyReply,
  { caller, parts, sessions }: { caller: Caller; parts: HandlerParts; sessions: Sessions },
): Promise<FastifyReply> {
  const { request_id } = request.hangar;
  const { raw } = request;
  const ends = [uploads(raw.socket)];
  const whileAllowed: Exchange["whileAllowed"] = (check) => {
    const session = sessions.open(async () => check(await callerOf(row, parts, request)));
    ends.push(() => session.close());
    return session.signal;
  };
  const takeOver = (): void => void reply.hijack();
  try {
    await row.relay?.({ request: raw, response: reply.raw, caller, request_id, takeOver, whileAllowed });
  } finally {
    for (const end of ends) end();
  }
  return reply;
}

/**
 * Handles an upload, a stream or a WebSocket, whose caller's access is checked again while it lasts. False for others.
 * Replies are not passed through promises: a Fastify reply is a thenable that resolves to undefined once sent.
 */
async function handleLong(row: Row, call: RouteCall, serving: Serving): Promise<boolean> {
  if (!row.upload) return isSession(row, call.request) && (await handleUpgrade(row, call, serving));
  await handleUpload(row, call, serving);
  return true;
}

/** Receives a body of any length; the caller's access is checked again while it arrives. */
async function handleUpload(
  row: Row,
  { request, reply, input, facts }: RouteCall,
  { parts, sessions, ending }: Serving,
): Promise<void> {
  const session = openSession(row, { request, input }, { parts, sessions });
  const over = uploads(request.raw.socket);
  try {
    const upload = uploadOf(request, parts.clock, session.signal);
    const outcome = await run(row, callOf(request, reply, input, { ...facts, upload, ending }));
    await send(row, reply, outcome);
  } finally {
    over();
    session.close();
  }
}

const openSession = (
  row: Row,
  { request, input }: Pick<RouteCall, "request" | "input">,
  { parts, sessions }: Pick<Serving, "parts" | "sessions">,
) =>
  sessions.open(async () => {
    await admittedTo(row, parts, await callerOf(row, parts, request), input);
  });

/** Opens a stream or WebSocket; the caller's access is checked again while it lasts. False when this is an ordinary call. */
async function handleUpgrade(
  row: Row,
  { request, reply, input, facts }: RouteCall,
  { parts, sessions, ending }: Serving,
): Promise<boolean> {
  const over = parts.usage.stream(facts.caller);
  const session = openSession(row, { request, input }, { parts, sessions });
  const until = AbortSignal.any([ending, session.signal]);
  const call = callOf(request, reply, input, { ...facts, ending: until });
  try {
    if (row.websocket && acceptsWebSocket(request.raw)) {
      await handleWebSocket(row.websocket, call, request, reply, parts, until);
      return true;
    }
    const source = await row.stream?.(call);
    if (source) await startStream(source, reply, parts, { ending: until, lines: row.lines !== undefined });
    return source !== undefined;
  } finally {
    session.close();
    over();
  }
}

/** Serves a WebSocket. A failure closes it with a reason, and is logged. */
async function handleWebSocket(
  work: NonNullable<Row["websocket"]>,
  call: AnyCall,
  { raw }: FastifyRequest,
  reply: FastifyReply,
  { clock, log }: ServerParts,
  ending: AbortSignal,
): Promise<void> {
  let session: WebSocketSession | undefined;
  const accept = (): WebSocketSession => {
    session = acceptWebSocket(raw, reply.raw, { clock, ending });
    reply.hijack();
    return session;
  };
  try {
    await work(call, accept);
  } catch (thrown) {
    if (!session) throw thrown;
    log.warn({ error: thrown, request_id: call.request_id }, "a line ended early");
    session.end(CLOSE_CODES.broken, "internal error");
  }
}

/** Uploads are not stored for comparison, so they cannot be repeated. */
const isRepeatable = ({ method, access, style, upload }: Row): boolean =>
  method === "POST" && access !== "open" && access !== "machine" && (!style || style === "sprites") && !upload;

/** The same request with the same key gets the first response. */
async function once(
  { idempotency }: ServerParts,
  { method, url, hangar }: FastifyRequest,
  reply: FastifyReply,
  who: { caller: string; key: string; recorded: boolean },
  work: (ids: Ids) => Promise<Recorded>,
): Promise<Recorded> {
  const { repeated, ...recorded } = await idempotency.once({ ...who, method, path: url, body: hangar.rawBody }, work);
  if (repeated) reply.header("idempotent-replayed", "true");
  return recorded;
}

/** A machine's row changes too often to be worth caching, except for lists of its resources. */
const isConfirmed = (row: Row, request: FastifyRequest): boolean =>
  row.method === "GET" &&
  !row.relay &&
  !isSession(row, request) &&
  (row.pages !== undefined || !("machine_id" in (request.params as Target)));

/** A stream or WebSocket without a timeout. */
const isSession = (row: Row, request: FastifyRequest): boolean =>
  (row.websocket !== undefined && acceptsWebSocket(request.raw)) || wantsStream(row, request);

function wantsStream({ stream, lines }: Row, { method, headers }: FastifyRequest): boolean {
  if (stream === undefined || method === "HEAD") return false;
  const { accept = "" } = headers;
  if (lines === "always") return true;
  return lines === "asked" ? accept.includes("application/x-ndjson") : !accept.includes("application/json");
}

async function startStream(
  source: AsyncIterable<readonly StreamItem[]>,
  reply: FastifyReply,
  { clock, log }: ServerParts,
  { ending, lines }: { ending: AbortSignal; lines: boolean },
): Promise<void> {
  await sendStream(reply, source, { clock, lines, signal: new RequestSignal(reply.raw, ending).signal }).catch(
    (error: unknown) => {
      log.warn({ error }, "a stream ended early");
    },
  );
}

function readInput(row: Row, request: FastifyRequest, reply: FastifyReply): Input {
  const query = { ...(request.query as Record<string, unknown>), ...formOf(row, request) };
  const { unknown, ...input } = checkedInput(row, {
    params: request.params as Record<string, string>,
    query,
    body: request.body,
  });
  if (unknown.length > 0) reply.header("svc-warning", unknown.join("; "));
  return input;
}

/** Form parameters in the body; repeated names become a list. */
function formOf({ style }: Row, { hangar }: FastifyRequest): Record<string, string | string[]> {
  if (style !== "prometheus" || hangar.rawBody === "") return {};
  const form = new URLSearchParams(hangar.rawBody);
  return Object.fromEntries(
    [...new Set(form.keys())].map((name) => {
      const values = form.getAll(name);
      return [name, values.length === 1 ? (values[0] ?? "") : values];
    }),
  );
}

function callOf(
  request: FastifyRequest,
  reply: FastifyReply,
  input: Input,
  { ending, ...rest }: CallFacts & { ending: AbortSignal },
): AnyCall {
  return Object.assign(new RequestSignal(reply.raw, ending), {
    ...input,
    ...rest,
    request_id: request.hangar.request_id,
    header(name: string) {
      const value = request.headers[name];
      return Array.isArray(value) ? value[0] : value;
    },
  });
}

/**
 * Whether the client is still connected. The getter is on the prototype, so that a handler's rest parameter does not
 * copy (and create) it: most handlers finish before a client could disconnect.
 */
class RequestSignal {
  readonly #response: ServerResponse;
  readonly #ending: AbortSignal;
  #signal: AbortSignal | undefined;

  constructor(response: ServerResponse, ending: AbortSignal) {
    this.#response = response;
    this.#ending = ending;
  }

  get signal(): AbortSignal {
    if (!this.#signal) {
      const disconnected = new AbortController();
      const left = (): void => {
        if (!this.#response.writableFinished) disconnected.abort();
      };
      // A disconnect before the listener was added is not announced again.
      if (this.#response.closed) left();
      else this.#response.once("close", left);
      this.#signal = AbortSignal.any([disconnected.signal, this.#ending]);
    }
    return this.#signal;
  }
}

interface Outcome {
  status: number;
  body: string | Uint8Array | undefined;
}

async function run(row: Row, call: AnyCall): Promise<Outcome> {
  const value = await row.handle(call);
  if (value === undefined) return { status: row.response.status, body: undefined };
  return {
    status: row.response.status,
    body: row.response.type ? (value as string | Uint8Array) : JSON.stringify(withNext(value, call.page)),
  };
}

/** Only text responses are stored for repeats. */
function recordable({ status, body }: Outcome): Recorded {
  return { status, body: body instanceof Uint8Array ? Buffer.from(body).toString() : body };
}

function send(row: Row, reply: FastifyReply, { status, body }: Outcome): FastifyReply {
  reply.code(status);
  if (row.cache_s !== undefined) reply.header("cache-control", `public, max-age=${row.cache_s}`);
  if (body === undefined) return reply.send();
  const type = row.response.type ?? "application/json";
  if (type === "text/html") reply.headers(headersOf(row));
  return reply
    .header("content-type", `${type}; charset=utf-8`)
    .send(body instanceof Uint8Array ? Buffer.from(body.buffer, body.byteOffset, body.byteLength) : body);
}

const headersOf = ({ response: answer }: Row): Readonly<Record<string, string>> =>
  ("headers" in answer ? answer.headers : undefined) ?? PAGE_HEADERS;
