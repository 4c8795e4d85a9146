/** The OCI distribution API over the registry's rules: paths, headers and answers. */
import { createHash } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import { pipeline } from "node:stream/promises";
import type { Action } from "#core/caveats.ts";
import type { Clock } from "#core/clock.ts";
import { ApiError, fail } from "#core/errors.ts";
import type { Access, Admitted, Caller, Guard } from "#http/access.ts";
import type { Exchange } from "#http/route.ts";
import { piecesOf } from "#http/upload.ts";
import { algorithmOf, type Operation, type RepositoryName, readDigest, readName, readPath } from "./paths.ts";
import type { Registry, RepositoryAt } from "./service.ts";
import type { NamePage } from "./types.ts";
import { rangeOf, type Upload } from "./uploads.ts";

export interface RegistryHttpParts {
  registry: Registry;
  guard: Pick<Guard, "admit">;
  clock: Clock;
}

const MEDIA_INDEX = "application/vnd.oci.image.index.v1+json";

/** Required access. */
type OrgAccess = Extract<Access, `${string} org`>;
const ACCESS: Record<string, OrgAccess> = {
  GET: "read org",
  HEAD: "read org",
  POST: "create org",
  PUT: "create org",
  PATCH: "create org",
  DELETE: "delete org",
};

/** One authenticated request. */
interface Call {
  request: IncomingMessage;
  response: ServerResponse;
  caller: Caller;
  query: URLSearchParams;
  /** Aborted when the caller may no longer do this. */
  allowed: AbortSignal;
  /** Aborted then, and when the client has disconnected. */
  signal: AbortSignal;
  /** Writes the response head; the body follows by hand. */
  begin(status: number, headers: Record<string, string | number>): void;
  answer(status: number, headers?: Record<string, string | number>, body?: string | Uint8Array): void;
}

type Of<Kind extends Operation["kind"]> = Extract<Operation, { kind: Kind }>;

export class RegistryHttp {
  readonly #parts: RegistryHttpParts;

  constructor(parts: RegistryHttpParts) {
    this.#parts = parts;
  }

  async relay(exchange: Exchange): Promise<void> {
    const { request, response, caller, request_id, takeOver, whileAllowed } = exchange;
    const url = new URL(request.url ?? "/", "http://registry");
    const operation = readPath(decode(url.pathname.replace(/^\/v2\/?/, "")));
    const method = request.method ?? "GET";
    const key = `${method === "HEAD" ? "GET" : method} ${operation.kind}`;
    const work = this.#table[key];
    if (!work) fail("method_not_allowed", `${method} is not a method of ${url.pathname}`);
    const where = await this.#admit(caller, operation, method);
    const allowed = whileAllowed((again) => this.#admit(again, operation, method));
    const disconnected = new AbortController();
    response.once("close", () => disconnected.abort());
    const call: Call = {
      request,
      response,
      caller,
      query: url.searchParams,
      allowed,
      signal: AbortSignal.any([disconnected.signal, allowed]),
      begin(status, headers) {
        takeOver();
        response.writeHead(status, { ...COMMON, "svc-request-id": request_id, ...headers });
      },
      answer(status, headers = {}, body = "") {
        call.begin(status, { ...(status === 204 ? {} : { "content-length": Buffer.byteLength(body) }), ...headers });
        response.end(request.method === "HEAD" ? undefined : body);
      },
    };
    await work(call, operation as never, where);
  }

  readonly #table: Record<string, (call: Call, operation: never, at: RepositoryAt) => Promise<void>> = {
    "GET base": async ({ answer }) => answer(200, { "content-type": "application/json" }, "{}"),
    "GET catalog": (call, _operation, at) => this.#catalog(call, at),
    "GET tags": (call, _operation, at) => this.#tags(call, at),
    "POST uploads": (call, _operation, at) => this.#begin(call, at),
    "GET upload": async ({ answer }, { upload_id }: Of<"upload">, at) =>
      answer(204, progressOf(at, this.#parts.registry.upload(at, upload_id))),
    "PATCH upload": (call, operation, at) => this.#append(call, operation, at),
    "PUT upload": (call, operation, at) => this.#finish(call, operation, at),
    "DELETE upload": async ({ answer }, { upload_id }: Of<"upload">, at) => {
      const { registry } = this.#parts;
      await registry.cancel(registry.upload(at, upload_id));
      answer(204);
    },
    "GET blob": (call, operation, at) => this.#blob(call, operation, at),
    "DELETE blob": async ({ answer }, { digest }: Of<"blob">, at) => {
      await this.#parts.registry.deleteBlob(at, digest);
      answer(202);
    },
    "GET manifest": (call, operation, at) => this.#manifest(call, operation, at),
    "PUT manifest": (call, operation, at) => this.#putManifest(call, operation, at),
    "DELETE manifest": async ({ answer }, { reference }: Of<"manifest">, at) => {
      await this.#parts.registry.deleteManifest(at, reference);
      answer(202);
    },
    "GET referrers": (call, operation, at) => this.#referrers(call, operation, at),
  };

  /** The organization is the first part of the name; for a list, the token's own. */
  async #admit(caller: Caller, operation: Operation, method: string): Promise<RepositoryAt> {
    const nowhere = { org_id: "", repository: "", full: "" };
    const { guard } = this.#parts;
    const access = ACCESS[method] ?? "read org";
    if (operation.kind === "catalog") {
      const { org } = await guard.admit(caller, access, {});
      return { org_id: org?.id ?? "", repository: "", full: org?.slug ?? "" };
    }
    if (!("name" in operation)) return nowhere;
    const { name } = operation;
    const { org } = await guard
      .admit(caller, access, { org_slug: name.org_slug })
      .catch((thrown: unknown) => this.#admitApp(thrown, caller, access, name));
    return at(org?.id ?? "", name);
  }

  /** A token of one app may use repositories that begin with the app's name. */
  async #admitApp(refused: unknown, caller: Caller, access: OrgAccess, name: RepositoryName): Promise<Admitted> {
    if (!(refused instanceof ApiError) || refused.code !== "forbidden") throw refused;
    const app_name = name.repository.split("/")[0] ?? "";
    const [action] = access.split(" ") as [Action];
    const admitted = await this.#parts.guard.admit(caller, `${action} app`, { app_name }).catch(() => undefined);
    if (admitted?.org?.slug !== name.org_slug) throw refused;
    return admitted;
  }

  async #catalog({ query, answer }: Call, { org_id, full }: RepositoryAt): Promise<void> {
    const page = this.#page(query);
    const last = page.last.startsWith(`${full}/`) ? page.last.slice(full.length + 1) : page.last;
    const found = await this.#parts.registry.repositories(org_id, { ...page, last });
    const names = found.map(({ repository }) => `${full}/${repository}`);
    answer(200, { ...JSON_TYPE, ...nextLink("/v2/_catalog", page, names) }, JSON.stringify({ repositories: names }));
  }

  async #tags({ query, answer }: Call, where: RepositoryAt): Promise<void> {
    const page = this.#page(query);
    const tags = page.limit === 0 ? [] : (await this.#parts.registry.tags(where, page)).map(({ tag }) => tag);
    const next = nextLink(`/v2/${where.full}/tags/list`, page, tags);
    answer(200, { ...JSON_TYPE, ...next }, JSON.stringify({ name: where.full, tags }));
  }

  async #begin(call: Call, where: RepositoryAt): Promise<void> {
    const { registry } = this.#parts;
    const { query, answer, request } = call;
    const [digest, mount] = [query.get("digest"), query.get("mount")];
    if (mount !== null) {
      const wanted = readDigest(mount);
      const source = await this.#mountSource(call, where, wanted);
      const mounted = source === undefined ? undefined : await registry.mount(where, wanted, source);
      if (mounted) return answer(201, blobHeaders(where, mounted.digest));
    }
    const wanted = digest === null ? undefined : readDigest(digest);
    const upload = await registry.begin(where);
    if (wanted === undefined || !hasBody(request)) return answer(202, progressOf(where, upload));
    await this.#receive(call, upload);
    const { digest: stored } = await registry.finish(upload, wanted);
    answer(201, blobHeaders(where, stored));
  }

  /** The repository that a blob is mounted from: of the same organization, and one that the caller may read. */
  async #mountSource(
    { query, caller }: Call,
    { org_id, full }: RepositoryAt,
    digest: string,
  ): Promise<string | undefined> {
    const { org_slug } = readName(full);
    const from = query.get("from");
    const holder = from ?? (await this.#parts.registry.holderOf(org_id, digest));
    if (holder === undefined) return undefined;
    const name = readName(from ?? `${org_slug}/${holder}`);
    if (name.org_slug !== org_slug) return undefined;
    return (await this.#admit(caller, { kind: "blob", name, digest }, "GET").catch(refused))?.repository;
  }

  async #append(call: Call, { upload_id }: Of<"upload">, where: RepositoryAt): Promise<void> {
    const upload = this.#parts.registry.upload(where, upload_id);
    await this.#receive(call, upload);
    call.answer(202, progressOf(where, upload));
  }

  async #finish(call: Call, { upload_id }: Of<"upload">, where: RepositoryAt): Promise<void> {
    const { registry } = this.#parts;
    const digest = readDigest(call.query.get("digest") ?? "");
    const upload = registry.upload(where, upload_id);
    if (hasBody(call.request)) await this.#receive(call, upload);
    const stored = await registry.finish(upload, digest);
    call.answer(201, blobHeaders(where, stored.digest));
  }

  async #receive({ request, allowed }: Call, upload: Upload): Promise<void> {
    const range = request.headers["content-range"];
    const start = range === undefined ? undefined : Number(/^(?:bytes )?(\d+)-\d+(?:\/.*)?$/.exec(range)?.[1]);
    if (Number.isNaN(start)) fail("range_invalid", "Content-Range is START-END, both counted from 0");
    await this.#parts.registry.append(upload, piecesOf(request, this.#parts.clock, allowed), start);
  }

  async #blob({ request, response, begin, signal }: Call, { digest }: Of<"blob">, where: RepositoryAt): Promise<void> {
    const { registry } = this.#parts;
    const blob = await registry.blob(where, digest);
    const part = rangeAsked(request.headers.range, blob.size);
    const { offset, length } = part ?? { offset: 0, length: blob.size };
    const pieces = registry.read(blob, { offset, length }, signal);
    // Reads the first chunk before the response begins, so that missing data is an error, not a truncated response.
    const first = request.method === "HEAD" ? undefined : await pieces.next();
    begin(part ? 206 : 200, {
      ...blobHeaders(where, digest),
      "content-type": "application/octet-stream",
      "accept-ranges": "bytes",
      "content-length": length,
      ...(part ? { "content-range": `bytes ${offset}-${offset + length - 1}/${blob.size}` } : {}),
    });
    if (!first || first.done) return void response.end();
    // A failure aborts the connection, so that a client does not take the part for the whole blob.
    await pipeline(rest(first.value, pieces), response, { signal }).catch(() => response.destroy());
  }

  async #manifest(call: Call, { reference }: Of<"manifest">, where: RepositoryAt): Promise<void> {
    const { registry } = this.#parts;
    const { digest, media_type, size } = await registry.manifest(where, reference);
    const headers = { "content-type": media_type, "docker-content-digest": digest, etag: `"${digest}"` };
    if (call.request.method === "HEAD") return call.answer(200, { ...headers, "content-length": size });
    call.answer(200, headers, await registry.document(where, digest, call.signal));
  }

  async #putManifest(
    { request, answer, allowed }: Call,
    { reference }: Of<"manifest">,
    where: RepositoryAt,
  ): Promise<void> {
    const { registry, clock } = this.#parts;
    const most = registry.limits.manifest_bytes;
    const pieces: Uint8Array[] = [];
    let bytes = 0;
    for await (const piece of piecesOf(request, clock, allowed)) {
      bytes += piece.length;
      if (bytes > most) fail("payload_too_large", `a manifest has at most ${most} bytes (limit manifest_bytes)`);
      pieces.push(piece);
    }
    const document = Buffer.concat(pieces);
    const algorithm = algorithmOf(reference.digest ?? "");
    const digest = `${algorithm}:${createHash(algorithm).update(document).digest("hex")}`;
    const content_type = request.headers["content-type"];
    const { subject } = await registry.putManifest(where, reference, { document, digest, content_type });
    answer(201, {
      location: `/v2/${where.full}/manifests/${digest}`,
      "docker-content-digest": digest,
      ...(subject === null ? {} : { "oci-subject": subject }),
    });
  }

  async #referrers({ query, answer }: Call, { digest }: { digest: string }, where: RepositoryAt): Promise<void> {
    const { registry } = this.#parts;
    const page = this.#page(query, registry.limits.referrers_page);
    const found = await registry.referrers(where, digest, page);
    const last = found.map((one) => one.digest);
    const type = query.get("artifactType");
    const manifests = found
      .filter(({ artifact_type }) => type === null || artifact_type === type)
      .map(({ media_type, digest: own, size, artifact_type, annotations }) => ({
        mediaType: media_type,
        digest: own,
        size,
        ...(artifact_type === null ? {} : { artifactType: artifact_type }),
        ...(annotations === null ? {} : { annotations: JSON.parse(annotations) as object }),
      }));
    const filtered = type === null ? {} : { "oci-filters-applied": "artifactType" };
    const index = { schemaVersion: 2, mediaType: MEDIA_INDEX, manifests };
    const path = `/v2/${where.full}/referrers/${digest}`;
    const next = nextLink(path, page, last, type === null ? "" : `&artifactType=${encodeURIComponent(type)}`);
    answer(200, { "content-type": MEDIA_INDEX, ...filtered, ...next }, JSON.stringify(index));
  }

  #page(query: URLSearchParams, most: number = this.#parts.registry.limits.page): NamePage {
    const n = query.get("n");
    if (n !== null && !/^\d{1,9}$/.test(n)) {
      const problem = "is not a number";
      fail("invalid_request", `query.n ${problem}`, {
        details: [{ path: "query.n", problem, allowed: `0 to ${most}` }],
      });
    }
    return { last: query.get("last") ?? "", limit: Math.min(n === null ? most : Number(n), most) };
  }
}

/** A blob that the caller may not read is one that is not there. */
function refused(thrown: unknown): undefined {
  if (!(thrown instanceof ApiError)) throw thrown;
}

async function* rest(first: Uint8Array, others: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
  yield first;
  yield* others;
}

const COMMON = {
  "docker-distribution-api-version": "registry/2.0",
  // What was pushed is never a page of the platform.
  "content-security-policy": "default-src 'none'; sandbox",
  "x-content-type-options": "nosniff",
};
const JSON_TYPE = { "content-type": "application/json" };

const at = (org_id: string, { full, repository }: RepositoryName): RepositoryAt => ({ org_id, repository, full });

const progressOf = ({ full }: RepositoryAt, upload: Upload): Record<string, string> => ({
  location: `/v2/${full}/blobs/uploads/${upload.id}`,
  range: rangeOf(upload),
  "docker-upload-uuid": upload.id,
});

const blobHeaders = ({ full }: RepositoryAt, digest: string): Record<string, string> => ({
  location: `/v2/${full}/blobs/${digest}`,
  "docker-content-digest": digest,
  etag: `"${digest}"`,
});

/** A full page links to the next one, which may be empty. */
function nextLink(path: string, { limit }: NamePage, names: readonly string[], more = ""): Record<string, string> {
  const last = names.at(-1);
  if (last === undefined || names.length < limit) return {};
  return { link: `<${path}?n=${limit}&last=${encodeURIComponent(last)}${more}>; rel="next"` };
}

const hasBody = ({ headers }: IncomingMessage): boolean =>
  headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;

/** One range; multiple or other units get the whole blob. */
function rangeAsked(header: string | undefined, size: number): { offset: number; length: number } | undefined {
  const found = /^bytes=(\d*)-(\d*)$/.exec(header ?? "");
  if (!found || found[0] === "bytes=-") return undefined;
  const [, from = "", to = ""] = found;
  const offset = from === "" ? Math.max(0, size - Number(to)) : Number(from);
  const end = from === "" || to === "" ? size - 1 : Math.min(Number(to), size - 1);
  if (offset > end) {
    fail("range_invalid", `the blob has ${size} bytes`, { headers: { "content-range": `bytes */${size}` } });
  }
  return { offset, length: end - offset + 1 };
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    fail("name_invalid", "the path holds a broken percent-encoding");
  }
}
