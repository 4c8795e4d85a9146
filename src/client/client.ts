import type { ErrorBody } from "#core/errors.ts";
import type { Api } from "./api.ts";
import { LIST_FIELDS } from "./list-fields.ts";

/** Default number of items of a page. */
const PAGE_ITEMS = 500;

/** Lines of a stream end at line feeds alone: to a pattern U+2028 is an end too, and machines may write it. */
const DATA = "data: ";

/** An error response, of the platform or of a proxy in between. */
export class ClientError extends Error {
  override readonly name = "ClientError";
  /** 0 when there was no answer. */
  readonly http: number;
  readonly body: Partial<ErrorBody>;
  /** Retry-After of the response, in seconds. */
  readonly retry_after_s: number | undefined;

  constructor(http: number, body: Partial<ErrorBody>, cause?: unknown, retry_after_s?: number) {
    super(body.error ?? `the platform answered ${http}`, cause === undefined ? undefined : { cause });
    this.http = http;
    this.body = body;
    this.retry_after_s = retry_after_s;
  }
}

type Parts<Route extends keyof Api> = {
  [Part in "params" | "query" | "body" as Api[Route][Part] extends Record<string, never> | undefined
    ? never
    : Part]: Api[Route][Part];
};
/** A query without a required parameter may be left out. */
type Input<Route extends keyof Api> = Omit<Parts<Route>, "query"> &
  (object extends Api[Route]["query"]
    ? { query?: Api[Route]["query"] }
    : Pick<Parts<Route>, "query" & keyof Parts<Route>>) & {
    idempotency_key?: string;
    headers?: Record<string, string>;
    signal?: AbortSignal;
  };

/** Routes that answer a list, in pages. */
export type ListRoute = keyof typeof LIST_FIELDS & keyof Api;
type Answer<Route extends ListRoute> = Api[Route]["answer"];
/** One item of a list. */
export type ListItem<Route extends ListRoute> =
  Answer<Route> extends readonly (infer Item)[]
    ? Item
    : (typeof LIST_FIELDS)[Route] extends keyof Answer<Route>
      ? Answer<Route>[(typeof LIST_FIELDS)[Route]] extends readonly (infer Item)[]
        ? Item
        : never
      : never;

/** A request about to be sent, for those who want to see it. */
export interface Outgoing {
  method: string;
  url: string;
  headers: Record<string, string>;
  body: string | undefined;
}

/** What is read of an answer; a `Response` of fetch is one. */
export interface ClientResponse {
  status: number;
  ok: boolean;
  url: string;
  headers: { get(name: string): string | null };
  text(): Promise<string>;
}

export interface ClientOptions {
  base_url: string;
  token: string | undefined;
  /**
   * How often a request is tried again when the platform says that helps, or does not answer; 0 when left out. Each
   * try waits longer, or as long as the answer says. A POST gets an Idempotency-Key, so that it is done once.
   */
  retries?: number;
  /** Called before each request. */
  onRequest?: (request: Outgoing) => void;
  /** Sends requests whose answers are no streams in place of `fetch`; undefined when it cannot send this one. */
  transport?: (request: Outgoing, signal: AbortSignal | undefined) => Promise<ClientResponse | undefined>;
}

/** A typed client of the API: `client.call("POST /v1/apps", { body: { app_name: "web" } })`. */
export class Client {
  readonly #options: ClientOptions;

  constructor(options: ClientOptions) {
    this.#options = options;
  }

  get base_url(): string {
    return this.#options.base_url;
  }

  /** A client of the same platform with another token. */
  withToken(token: string): Client {
    return new Client({ ...this.#options, token });
  }

  async call<Route extends keyof Api>(route: Route, input: Input<Route>): Promise<Api[Route]["answer"]> {
    return (await this.#call(route, input)).answer;
  }

  /** All items of a list; pages are requested as they are needed. */
  async *list<Route extends ListRoute>(route: Route, input: Input<Route>): AsyncGenerator<ListItem<Route>> {
    for await (const page of this.pages(route, input)) yield* page;
  }

  /** The pages of a list; `limit` in the query is the size of one. */
  async *pages<Route extends ListRoute>(route: Route, input: Input<Route>): AsyncGenerator<ListItem<Route>[]> {
    const query = { limit: PAGE_ITEMS, ...(input as { query?: object }).query };
    const field = LIST_FIELDS[route];
    for (let more: { cursor?: string } = {}; ; ) {
      const { answer, next } = await this.#call(route, { ...input, query: { ...query, ...more } } as Input<Route>);
      const items = Array.isArray(answer) ? answer : (answer as Record<string, unknown>)[field];
      yield items as ListItem<Route>[];
      if (next === null) return;
      more = { cursor: next };
    }
  }

  async #call<Route extends keyof Api>(
    route: Route,
    input: Input<Route>,
  ): Promise<{ answer: Api[Route]["answer"]; next: string | null }> {
    const { retries = 0 } = this.#options;
    // The same key at every try, so that what was done is not done again.
    const key = retries > 0 && route.startsWith("POST ") ? { idempotency_key: crypto.randomUUID() } : {};
    const request = this.#compose(route, { ...key, ...(input as Record<string, unknown>) });
    for (let tries = 0; ; tries++) {
      try {
        const { answer, next } = await this.#once(request, input.signal);
        return { answer: answer as Api[Route]["answer"], next };
      } catch (thrown) {
        if (tries >= retries || !worthAnother(thrown) || input.signal?.aborted) throw thrown;
        await pause(thrown, tries, input.signal);
      }
    }
  }

  async #once(request: Outgoing, signal: AbortSignal | undefined): Promise<{ answer: unknown; next: string | null }> {
    this.#options.onRequest?.(request);
    const response = await this.#send(request, signal);
    const text = await textOf(response);
    if (!response.ok) throw new ClientError(response.status, parseError(text), undefined, retryAfter(response));
    const json = response.headers.get("content-type")?.startsWith("application/json");
    const answer: unknown = json ? JSON.parse(text) : text === "" ? undefined : text;
    return { answer, next: response.headers.get("svc-next-cursor") };
  }

  async #send(request: Outgoing, signal: AbortSignal | undefined): Promise<ClientResponse> {
    const { transport } = this.#options;
    const answer =
      transport && (await transport(request, signal).catch((cause: unknown) => noResponse(request, cause)));
    return answer ?? (await send(request, signal));
  }

  /** Sends a body as it comes to a route that takes one. */
  async upload<Route extends keyof Api>(
    route: Route,
    input: Omit<Input<Route>, "body"> & { upload: ReadableStream<Uint8Array> },
  ): Promise<Api[Route]["answer"]> {
    const request = this.#compose(route, input as Record<string, unknown>);
    const headers = { ...request.headers, "content-type": "application/x-tar" };
    this.#options.onRequest?.({ ...request, headers, body: "@FILE" });
    const body = { body: input.upload, duplex: "half" } as RequestInit;
    const response = await send({ ...request, headers }, input.signal, body);
    const text = await textOf(response);
    if (!response.ok) throw new ClientError(response.status, parseError(text));
    return JSON.parse(text) as Api[Route]["answer"];
  }

  /** The messages of a route that answers as a stream, until it ends or `signal` says so. */
  async *stream<Route extends keyof Api, Message>(
    route: Route,
    input: Input<Route>,
    onOpen?: () => void,
  ): AsyncGenerator<Message> {
    const headers = { ...input.headers, accept: "text/event-stream" };
    const request = this.#compose(route, { ...(input as Record<string, unknown>), headers });
    this.#options.onRequest?.(request);
    const response = await send(request, input.signal);
    if (!response.ok || !response.body) throw new ClientError(response.status, parseError(await response.text()));
    onOpen?.();
    const brokeOff = (cause: unknown): never => {
      if (input.signal?.aborted) throw cause;
      throw broken(request.url, cause);
    };
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    let rest = "";
    try {
      // Not `for await`: not every browser's streams can be iterated.
      const read = () => reader.read().catch(brokeOff);
      for (let next = await read(); !next.done; next = await read()) {
        const blocks = (rest + next.value).split("\n\n");
        rest = blocks.pop() ?? "";
        for (const block of blocks) {
          const data = block.split("\n").find((line) => line.startsWith(DATA));
          if (data !== undefined) yield JSON.parse(data.slice(DATA.length)) as Message;
        }
      }
    } finally {
      // A consumer that leaves the loop early must close the connection.
      await reader.cancel().catch(() => {});
    }
  }

  /** The line of a route that is spoken with over WebSocket. The token goes with the protocols: a browser has no other way. */
  websocket<Route extends keyof Api>(route: Route, input: Input<Route>): WebSocket {
    const request = this.#compose(route, input as Record<string, unknown>);
    this.#options.onRequest?.(request);
    const { token = "" } = this.#options;
    const encoded = btoa(token).replaceAll("+", "-").replaceAll("/", "_").replaceAll("=", "");
    const line = new WebSocket(request.url.replace(/^http/, "ws"), ["hangar", `hangar.token.${encoded}`]);
    line.binaryType = "arraybuffer";
    return line;
  }

  /** The handshake of such a route, for programs with a WebSocket library of their own. */
  handshake<Route extends keyof Api>(
    route: Route,
    input: Input<Route>,
  ): { url: string; headers: Record<string, string> } {
    const request = this.#compose(route, input as Record<string, unknown>);
    this.#options.onRequest?.(request);
    return { url: request.url.replace(/^http/, "ws"), headers: request.headers };
  }

  #compose(route: string, input: Record<string, unknown>): Outgoing {
    const [method = "GET", pattern = "/"] = route.split(" ");
    const params = (input["params"] ?? {}) as Record<string, string>;
    const path = pattern.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
    const url = new URL(path, this.#options.base_url);
    for (const [name, value] of Object.entries(input["query"] ?? {})) {
      for (const one of Array.isArray(value) ? value : [value]) {
        if (one !== undefined) url.searchParams.append(name, String(one));
      }
    }
    const body = input["body"] === undefined ? undefined : JSON.stringify(input["body"]);
    const { token } = this.#options;
    return {
      method,
      url: url.href,
      headers: {
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...(typeof input["idempotency_key"] === "string" ? { "idempotency-key": input["idempotency_key"] } : {}),
        ...(input["headers"] as Record<string, string> | undefined),
      },
      body,
    };
  }
}

async function send(request: Outgoing, signal: AbortSignal | undefined, more: RequestInit = {}): Promise<Response> {
  const { method, url, headers, body } = request;
  try {
    return await fetch(url, {
      method,
      headers,
      ...(body === undefined ? {} : { body }),
      ...(signal ? { signal } : {}),
      ...more,
    });
  } catch (cause) {
    return noResponse(request, cause);
  }
}

function noResponse({ url }: Outgoing, cause: unknown): never {
  throw new ClientError(
    0,
    {
      error: `there is no answer from ${new URL(url).origin}`,
      hint: "is the platform running? `hangar up` (or `npm start` in its folder) starts it",
    },
    cause,
  );
}

/** The body of a response. A truncated one is an error. */
async function textOf(response: ClientResponse): Promise<string> {
  try {
    return await response.text();
  } catch (cause) {
    throw broken(response.url, cause);
  }
}

const broken = (url: string, cause: unknown): ClientError =>
  new ClientError(0, { error: `the answer from ${new URL(url).origin} broke off` }, cause);

const FIRST_PAUSE_MS = 100;
const LONGEST_PAUSE_MS = 10_000;

/** No response, or a retryable error. */
function worthAnother(thrown: unknown): boolean {
  if (!(thrown instanceof ClientError)) return false;
  const { http, body } = thrown;
  return http === 0 || (body.retryable ?? [429, 502, 503, 504].includes(http));
}

/** Retry-After if given; else exponential backoff with jitter. */
async function pause(thrown: unknown, tries: number, signal: AbortSignal | undefined): Promise<void> {
  const retryAfter = thrown instanceof ClientError ? thrown.retry_after_s : undefined;
  const doubled = FIRST_PAUSE_MS * 2 ** tries * (0.5 + Math.random() / 2);
  const ms = Math.min(LONGEST_PAUSE_MS, retryAfter === undefined ? doubled : retryAfter * 1000);
  await new Promise<void>((resolve, reject) => {
    const giveUp = (): void => {
      clearTimeout(timer);
      reject(thrown as Error);
    };
    const timer = setTimeout(() => {
      signal?.removeEventListener("abort", giveUp);
      resolve();
    }, ms);
    signal?.addEventListener("abort", giveUp, { once: true });
  });
}

function retryAfter({ headers }: ClientResponse): number | undefined {
  const seconds = Number(headers.get("retry-after") ?? Number.NaN);
  return Number.isFinite(seconds) ? seconds : undefined;
}

function parseError(text: string): Partial<ErrorBody> {
  try {
    return JSON.parse(text) as ErrorBody;
  } catch {
    return { error: text.slice(0, 500) };
  }
}
