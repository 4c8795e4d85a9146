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

/** The most that a body may have, and the name of that limit for who sends more. */
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
  /**
   * It makes a credential, or something that acts later in the caller's name, or decides who may use one. Its answer is
   * kept nowhere, and the credential of a connector may not call it.
   */
  credential?: boolean;
  scheme?: SchemeRule;
  query?: TObject;
  body?: TSchema;
  /** The body is JSON whatever its Content-Type says. */
  any_type?: boolean;
  /** Takes a body of any length as it comes, of this kind, instead of JSON; what it is and how long it may be is the handler's to say. */
  upload?: "application/x-tar";
  /** When it is not the usual one. */
  body_limit?: BodyLimit;
  /** The success answer: its status, and its schema, or the media type of one that is not JSON. */
  response: RouteResponse;
  /**
   * The customs of the API it speaks. `prometheus`: parameters may also come as a form in the body, and errors
   * are `{status: "error", errorType, error}`. `registry`: errors are `{errors: [{code, message, detail}]}`.
   * `git`: errors are text, which Git shows.
   */
  style?: Style;
  /** It answers a list, in pages: `limit` and `cursor` are added to its query. */
  pages?: PageRule;
  /** How many seconds anyone may keep the answer. */
  cache_s?: number;
  /** Codes beyond the ones every route may answer. */
  errors?: readonly ErrorCode[];
  /** What the schemas cannot say about a body of any shape; told together with what they do. */
  check?(body: unknown): Problem[];
  handle(call: AnyCall): Promise<unknown>;
  /** Takes the request as it came, unread, and answers it itself; instead of `handle`. */
  relay?(exchange: Exchange): Promise<void>;
  /** The same as a server-sent stream, for every caller that does not ask for JSON; undefined when this call is none. */
  stream?(call: AnyCall): AsyncIterable<readonly StreamItem[]> | undefined;
  /**
   * Speaks with a caller who asks over WebSocket; `handle` answers those who do not. Until `accept` is called what is
   * thrown becomes the answer; afterwards there is none, and the line's own signal tells when the caller has left.
   */
  websocket?(call: AnyCall, accept: () => WebSocketSession): Promise<void>;
}

export type Style = "prometheus" | "registry" | "git";
export type Method = "GET" | "POST" | "PUT" | "PATCH" | "DELETE" | "OPTIONS";

/** A request that is passed on rather than answered here. */
export interface Exchange {
  request: IncomingMessage;
  response: ServerResponse;
  caller: Caller;
  request_id: string;
  /** Aborted when the caller, whose token is looked up again twice a second, no longer passes the check. */
  whileAllowed(check: (caller: Caller) => Promise<unknown>): AbortSignal;
  /** From here on the answer is written by hand; before, a thrown error becomes the answer. */
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
  identity: "Identity tokens of machines: the issuer, and the API inside a machine.",
  databases: "Who is primary among the nodes of a replicated database.",
  metrics: "Metrics queries, Prometheus-compatible.",
  alerts: "Alerting and recording rules, and what they found.",
} as const;
export type Part = keyof typeof PARTS;

export type RouteResponse =
  | { status: 200 | 201 | 202; schema: TSchema; type?: never }
  | {
      status: 200;
      type: "text/html" | "text/plain" | "application/json" | "*/*";
      /** Instead of the ones every page has. */
      headers?: Readonly<Record<string, string>>;
      schema?: never;
    }
  | { status: 101 | 202 | 204; schema?: never; type?: never };

export interface Call<Params, Query, Body, Key extends PageKey = PageKey> extends Admitted {
  params: Params;
  query: Query;
  body: Body;
  /** The page of the list that is asked for. */
  page: ListPage<Key>;
  /** The body of a route that takes an upload. Ends with an error when it stops coming. */
  upload: AsyncIterable<Uint8Array>;
  header(name: string): string | undefined;
  /** On open routes nobody, with an empty token id. */
  caller: Caller;
  /** Makes ids; the same ones again when the same Idempotency-Key comes again. */
  ids: Ids;
  request_id: string;
  /** Aborted when the client has gone, or the platform is stopping. */
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
    : // biome-ignore lint/suspicious/noConfusingVoidType: what a handler without an answer returns.
      void;

interface RowOf<Path extends string, Query, Body, A extends RouteResponse, Key extends PageKey>
  extends Omit<Row, "method" | "path" | "query" | "body" | "pages" | "response" | "handle" | "stream" | "websocket"> {
  query?: Query;
  pages?: PageRule<Key>;
  body?: Body;
  response: A;
  handle(call: Call<Parameters<Path>, StaticOf<Query>, StaticOf<Body>, Key>): Promise<Returns<A>>;
  stream?(
    call: Call<Parameters<Path>, StaticOf<Query>, StaticOf<Body>>,
  ): AsyncIterable<readonly StreamItem[]> | undefined;
  websocket?(
    call: Call<Parameters<Path>, StaticOf<Query>, StaticOf<Body>>,
    accept: () => WebSocketSession,
  ): Promise<void>;
}

/** Makes a row; parameters, query, body and answer are typed from it. */
export function route<
  const Path extends string,
  const A extends RouteResponse,
  Query extends TObject | undefined = undefined,
  Body extends TSchema | undefined = undefined,
  Key extends PageKey = never,
>(target: `${Method} ${Path}`, row: RowOf<Path, Query, Body, A, Key>): Row {
  const [method, path] = target.split(" ") as [Method, `/${string}`];
  // What is typed by this path stands in a list of rows of any path: the handler checks before it calls.
  return { ...listed(row as unknown as Row), method, path };
}

/** A list takes the parameters of pages, and may answer a next cursor. */
function listed(row: Row): Row {
  if (!row.pages) return row;
  const { response } = row;
  const paged = response.schema ? { ...response, schema: pageAnswer(response.schema) } : response;
  return { ...row, query: pageQuery(row.query), response: paged };
}
