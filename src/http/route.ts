import type { IncomingMessage, ServerResponse } from "node:http";
import type { Static, TObject, TSchema } from "typebox";
import type { ErrorCode } from "#core/error-catalogue.ts";
import type { Problem } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import type { PageKey } from "#core/list-page.ts";
import type { Access, Admitted, Caller, SchemeRule } from "./access.ts";
import { type ListPage, type PageRule, pageAnswer, pageQuery } from "./list-page.ts";
import type { StreamItem } from "./stream.ts";
import type { WebSocketSession } from "./websocket.ts";

/** Maximum size of a body, and the name of that limit for the error. */
export interface BodyLimit {
  name: string;
  bytes: number;
}

/**
 * A route is a row: the server, the OpenAPI document, the documentation page, the client and the auth matrix
 * test are made from the list of rows. A handler is three lines, or it is a service method.
 */
export interface Row {
  method: Method;
  path: `/${string}`;
  summary: string;
  description?: string;
  /** The part of the API it belongs to. */
  part: Part;
  access: Access;
  /** A machine may call it as itself, too: the guard of the row says what that allows. */
  by_machines?: boolean;
  /**
   * It creates a credential, or something that acts later in the caller's name, or decides who may use one. Its
   * response is not stored, and a connector's credential may not call it.
   */
  credential?: boolean;
  scheme?: SchemeRule;
  query?: TObject;
  body?: TSchema;
  /** The body is JSON whatever its Content-Type says. */
  any_type?: boolean;
  /** Streams a body of this type instead of JSON; the handler validates its content and length. */
  upload?: "application/x-tar";
  /** Overrides the default limit. */
  body_limit?: BodyLimit;
  /** The success answer: its status, and its schema, or the media type of one that is not JSON. */
  response: RouteResponse;
  /**
   * The conventions of the API it implements. `prometheus`: parameters may also be a form in the body, and errors are
   * `{status: "error", errorType, error}`. `registry`: errors are `{errors: [{code, message, detail}]}`.
   * `git`: errors are text, which Git shows. `sprites`: errors are `{error: code, message}`.
   */
  style?: Style;
  /** It returns a list in pages: `limit` and `cursor` are added to its query. */
  pages?: PageRule;
  /** Seconds that the response may be cached publicly. */
  cache_s?: number;
  /** Error codes beyond those of every route. */
  errors?: readonly ErrorCode[];
  /** Checks what the schemas cannot express; its problems are reported together with theirs. */
  check?(body: unknown): Problem[];
  handle(call: AnyCall): Promise<unknown>;
  /** Handles the raw request, with an unread body, instead of `handle`. */
  relay?(exchange: Exchange): Promise<void>;
  /** The same as server-sent events, for clients that do not accept JSON; undefined when this call has no stream. */
  stream?(call: AnyCall): StreamOf;
  /** The stream is lines of JSON (NDJSON) instead: for clients that ask for `application/x-ndjson`, or for all. */
  lines?: "asked" | "always";
  /**
   * Handles WebSocket requests; `handle` serves the others. Until `accept` is called a thrown error becomes the
   * response; afterwards there is none, and the session's signal is aborted when the client disconnects.
   */
  websocket?(call: AnyCall, accept: () => WebSocketSession): Promise<void>;
}

export type Style = "prometheus" | "registry" | "git" | "sprites";
type StreamOf =
  | AsyncIterable<readonly StreamItem[]>
  | undefined
  | Promise<AsyncIterable<readonly StreamItem[]> | undefined>;
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";

/** A request that is relayed. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  caller: Caller;
  request_id: string;
  /** Aborted when the caller, whose token is looked up again twice a second, no longer passes the check. */
  whileAllowed(check: (caller: Caller) => Promise<unknown>): AbortSignal;
  /** From here on the handler writes the response itself; before, a thrown error becomes the response. */
  takeOver(): void;
}

/** Parts of the API, in the order they are documented. */
export const PARTS = {
  platform: "The platform itself: health, who am I, this document.",
  orgs: "Organizations and their tokens.",
  apps: "Apps and their secrets.",
  images: "Images that machines boot from, and the registry that they are pushed to.",
  machines: "Machines: their life, leases, waiting, metadata and events.",
  volumes: "Volumes: storage that outlives machines, and its snapshots.",
  connectors: "Connectors and the gateway.",
  sprites: "Sprites: computers that keep their disk, sleep, and wake when they are used. The API of `@fly/sprites`.",
  identity: "Identity tokens of machines: the issuer, and the API inside a machine.",
  databases: "The primary of a replicated database.",
  metrics: "Metrics queries, Prometheus-compatible.",
  alerts: "Alerting and recording rules, and what they found.",
} as const;
export type Part = keyof typeof PARTS;

export type RouteResponse =
  | { status: 200 | 201 | 202; schema: TSchema; type?: never }
  | {
      status: 200;
      type: "text/html" | "text/plain" | "application/json" | "*/*";
      /** Overrides the default headers of pages. */
      headers?: Readonly<Record<string, string>>;
      schema?: never;
    }
  | { status: 101 | 202 | 204; schema?: never; type?: never };

export interface Call<Params, Query, Body, Key extends PageKey = PageKey> extends Admitted {
  params: Params;
  query: Query;
  body: Body;
  /** The requested page of the list. */
  page: ListPage<Key>;
  /** The body of an upload route. Fails when it stalls. */
  upload: AsyncIterable<Uint8Array>;
  header(name: string): string | undefined;
  /** On open routes an anonymous caller, with an empty token id. */
  caller: Caller;
  /** Generates ids; the same ones for a repeated Idempotency-Key. */
  ids: Ids;
  request_id: string;
  /** Aborted when the client has disconnected, or the platform is stopping. */
  signal: AbortSignal;
}

export type AnyCall = Call<Record<string, string>, Record<string, unknown>, unknown, never>;

type Parameters<Path extends string> = Path extends `${string}:${infer Name}/${infer Rest}`
  ? { [K in Name]: string } & Parameters<Rest>
  : Path extends `${string}:${infer Name}`
    ? { [K in Name]: string }
    : unknown;

type StaticOf<Schema> = Schema extends TSchema ? Static<Schema> : undefined;
type Returns<A> = A extends { schema: infer Schema extends TSchema }
  ? Static<Schema>
  : A extends { type: string }
    ? string | Uint8Array
    : // biome-ignore lint/suspicious/noConfusingVoidType: what a handler without a response returns.
      void;

interface RowOf<Path extends string, Query, Body, A extends RouteResponse, Key extends PageKey>
  extends Omit<Row, "method" | "path" | "query" | "body" | "pages" | "response" | "handle" | "stream" | "websocket"> {
  query?: Query;
  pages?: PageRule<Key>;
  body?: Body;
  response: A;
  handle(call: Call<Parameters<Path>, StaticOf<Query>, StaticOf<Body>, Key>): Promise<Returns<A>>;
  stream?(call: Call<Parameters<Path>, StaticOf<Query>, StaticOf<Body>>): StreamOf;
  websocket?(
    call: Call<Parameters<Path>, StaticOf<Query>, StaticOf<Body>>,
    accept: () => WebSocketSession,
  ): Promise<void>;
}

/** Defines a row; parameters, query, body and response are typed from it. */
export function route<
  const Path extends string,
  const A extends RouteResponse,
  Query extends TObject | undefined = undefined,
  Body extends TSchema | undefined = undefined,
  Key extends PageKey = never,
>(target: `${Method} ${Path}`, row: RowOf<Path, Query, Body, A, Key>): Row {
  const [method, path] = target.split(" ") as [Method, `/${string}`];
  // The row is typed by its path, but the list of rows is not: the handler validates the input before the call.
  return { ...listed(row as unknown as Row), method, path };
}

/** Adds the page parameters and the next cursor to a list. */
function listed(row: Row): Row {
  if (!row.pages) return row;
  const { response } = row;
  const paged = response.schema ? { ...response, schema: pageAnswer(response.schema) } : response;
  return { ...row, query: pageQuery(row.query), response: paged };
}
