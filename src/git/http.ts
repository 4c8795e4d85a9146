/**
 * Git's smart HTTP protocol: the requests of `git push`, `git fetch` and `git clone`. Errors are plain text, which Git shows to
 * the person (`remote: …`).
 */
import type { IncomingMessage, ServerResponse } from "node:http";
import { Readable } from "node:stream";
import { createGunzip } from "node:zlib";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { appOf, type Caller, type Guard } from "#http/access.ts";
import type { Exchange } from "#http/route.ts";
import { piecesOf } from "#http/upload.ts";
import type { Confinement } from "./confinement.ts";
import { collected, GitFailed, REPOSITORY, startGit } from "./git-command.ts";
import type { GitLimits } from "./limits.ts";
import type { GitService } from "./service.ts";
import type { GitApp } from "./types.ts";

export interface GitHttpParts {
  git: GitService;
  guard: Pick<Guard, "admit">;
  apps: { get(name: string): Promise<GitApp> };
  confinement: Confinement;
  limits: GitLimits;
  clock: Clock;
  /** A token that deploys this app in the caller's name, and nothing more. */
  deployToken(caller: Caller, app: GitApp, org_slug: string): Promise<string>;
}

type Service = "git-receive-pack" | "git-upload-pack";

interface Call {
  request: IncomingMessage;
  app: GitApp;
  org_slug: string;
  service: Service;
  caller: Caller;
  /** Writes the head; the body follows by hand. */
  begin(type: string): ServerResponse;
  /** The client has disconnected, or its token was revoked. */
  aborted: AbortSignal;
  /** The client has disconnected. */
  closed: AbortSignal;
  /** Aborted when the token no longer allows it. */
  allowed: AbortSignal;
}

const PATH = /^\/git\/([^/]+?)(?:\.git)?\/(info\/refs|git-receive-pack|git-upload-pack)$/;
/** A packet that Git prints as `remote: …`, and the end of a list of packets. */
const REMARK = 2;
const FLUSH = "0000";

export class GitHttp {
  readonly #parts: GitHttpParts;
  #fetches = 0;

  constructor(parts: GitHttpParts) {
    this.#parts = parts;
  }

  async relay(exchange: Exchange): Promise<void> {
    try {
      await this.#answer(exchange);
    } catch (thrown) {
      if (thrown instanceof GitFailed) fail("git_refused", `Git: ${thrown.message}`, { cause: thrown });
      throw thrown;
    }
  }

  async #answer({ request, response, caller, request_id, takeOver, whileAllowed }: Exchange): Promise<void> {
    const { git, guard, apps } = this.#parts;
    const url = new URL(request.url ?? "/", "http://git");
    const [, name = "", action = ""] = PATH.exec(decode(url.pathname)) ?? [];
    const is_list = action === "info/refs";
    const service = is_list ? url.searchParams.get("service") : action;
    if (service !== "git-receive-pack" && service !== "git-upload-pack")
      fail(
        "not_found",
        `there is no repository at ${url.pathname}: its address is /git/APP, and Git 1.6.6 or later is needed`,
      );
    if ((request.method === "POST") === is_list) fail("method_not_allowed", `${request.method} is not for ${action}`);
    const access = service === "git-receive-pack" ? "write app" : "read app";
    const admitted = await guard.admit(caller, access, { app_name: name });
    git.refuseUnable();
    const app = await apps.get(appOf(admitted).name);
    const allowed = whileAllowed((again) => guard.admit(again, access, { app_name: name }));
    const closed = new AbortController();
    response.once("close", () => closed.abort());
    const aborted = AbortSignal.any([closed.signal, allowed]);
    const begin = (type: string): ServerResponse => {
      takeOver();
      response.writeHead(200, {
        "content-type": type,
        "cache-control": "no-cache",
        "x-content-type-options": "nosniff",
        "svc-request-id": request_id,
      });
      return response;
    };
    const org_slug = admitted.org?.slug ?? "";
    const call = { request, app, org_slug, service, caller, begin, aborted, closed: closed.signal, allowed } as const;
    if (is_list) return await this.#list(call);
    await (service === "git-receive-pack" ? this.#push(call) : this.#fetch(call));
  }

  /** Branches and tags, which both begin with. */
  async #list({ request, app, service, begin, aborted }: Call): Promise<void> {
    const { git, confinement, limits } = this.#parts;
    if (service === "git-receive-pack") {
      this.#refuseBusy(git.pushes.running, limits.pushes_parallel);
      await git.repositories.open(app, (await git.settings(app.id)).deploy_branch);
      await git.repositories.room(app);
    }
    const dir = this.#existing(app);
    const protocol = protocolOf(request);
    const args = [service.slice("git-".length), "--stateless-rpc", "--http-backend-info-refs", REPOSITORY];
    const child = startGit(confinement, { dir, args, env: protocol, signal: this.#until(aborted) });
    child.stdin?.end();
    const first =
      service === "git-upload-pack" && protocol["GIT_PROTOCOL"] ? "" : `${packet(`# service=${service}\n`)}${FLUSH}`;
    await answer(child, () => {
      const response = begin(`application/x-${service}-advertisement`);
      response.write(first);
      return response;
    });
  }

  async #fetch({ request, app, begin, aborted, allowed }: Call): Promise<void> {
    const { confinement, limits } = this.#parts;
    this.#refuseBusy(this.#fetches, limits.fetches_parallel);
    const dir = this.#existing(app);
    this.#fetches++;
    try {
      const pieces: Uint8Array[] = [];
      let bytes = 0;
      for await (const piece of this.#body(request, allowed)) {
        bytes += piece.length;
        if (bytes > limits.fetch_request_bytes)
          fail(
            "payload_too_large",
            `the request has more than ${limits.fetch_request_bytes} bytes (limit fetch_request_bytes)`,
          );
        pieces.push(piece);
      }
      const args = ["upload-pack", "--stateless-rpc", REPOSITORY];
      const child = startGit(confinement, { dir, args, env: protocolOf(request), signal: this.#until(aborted) });
      child.stdin?.on("error", () => {});
      child.stdin?.end(Buffer.concat(pieces));
      await answer(child, () => begin("application/x-git-upload-pack-result"));
    } finally {
      this.#fetches--;
    }
  }

  async #push({ request, app, org_slug, caller, begin, closed, allowed }: Call): Promise<void> {
    const { git, limits, deployToken } = this.#parts;
    this.#refuseBusy(git.pushes.running, limits.pushes_parallel);
    const [{ deploy_branch }, { enabled }] = await Promise.all([git.settings(app.id), git.previews.settings(app.id)]);
    const token = await deployToken(caller, app, org_slug);
    let response: ServerResponse | undefined;
    let speaks_packets = false;
    const send = async (chunk: Uint8Array | string): Promise<void> => {
      response ??= begin("application/x-git-receive-pack-result");
      if (!closed.aborted && !response.write(chunk)) await drained(response, closed);
    };
    const watched = async function* (body: AsyncIterable<Uint8Array>): AsyncGenerator<Uint8Array> {
      let is_first = true;
      for await (const piece of body) {
        if (is_first) speaks_packets = Buffer.from(piece).includes("side-band-64k");
        is_first = false;
        yield piece;
      }
    };
    const is_answered = await git.pushes.receive({
      app,
      deploy_branch,
      has_previews: enabled,
      token,
      allowed,
      body: watched(this.#body(request, allowed)),
      output: send,
      remark: async (text) => {
        if (speaks_packets) await send(packet(`${String.fromCharCode(REMARK)}${text}\n`));
      },
    });
    response ??= begin("application/x-git-receive-pack-result");
    // `git push` hangs when an answer ends well that Git has not ended.
    if (!is_answered) return void response.destroy();
    // What is too much was not read: no other request can come after it.
    response.end(() => request.complete || request.socket.destroySoon());
  }

  /** Git compresses requests that are long. */
  #body(request: IncomingMessage, allowed: AbortSignal): AsyncIterable<Uint8Array> {
    const pieces = piecesOf(request, this.#parts.clock, allowed);
    const encoding = request.headers["content-encoding"] ?? "identity";
    if (encoding === "identity") return pieces;
    if (!/^(x-)?gzip$/.test(encoding))
      fail("unsupported_media_type", `bodies with Content-Encoding ${encoding} cannot be read`);
    return Readable.from(pieces).compose(createGunzip()) as AsyncIterable<Uint8Array>;
  }

  #until(aborted: AbortSignal): AbortSignal {
    return AbortSignal.any([aborted, AbortSignal.timeout(this.#parts.limits.fetch_ms)]);
  }

  #existing(app: GitApp): string {
    const { repositories } = this.#parts.git;
    if (!repositories.has(app))
      fail("not_found", `nothing was pushed to ${app.name} yet`, { hint: `git push http://…/git/${app.name} main` });
    return repositories.folder(app);
  }

  #refuseBusy(running: number, limit: number): void {
    if (running >= limit)
      fail("overloaded", `${running} transfers run already; wait until one has ended`, { retry_after_s: 10 });
  }
}

/** Passes on what Git answers. Without a word of Git there is no answer yet, and what is wrong can be one. */
async function answer(child: ReturnType<typeof startGit>, begin: () => ServerResponse): Promise<void> {
  const problem = collected(child.stderr);
  child.on("error", () => {});
  let response: ServerResponse | undefined;
  for await (const chunk of child.stdout ?? []) {
    response ??= begin();
    if (!response.write(chunk)) await drained(response);
  }
  if (!response) fail("git_refused", `Git could not answer: ${await problem}`);
  response.end();
}

const drained = (response: ServerResponse, aborted?: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    response.once("drain", resolve).once("close", resolve);
    if (aborted?.aborted || response.destroyed) resolve();
  });

const packet = (text: string): string =>
  `${(Buffer.byteLength(text) + FLUSH.length).toString(16).padStart(4, "0")}${text}`;

/** The protocol version that the client requests; version 1 if unknown. */
function protocolOf({ headers }: IncomingMessage): Record<string, string> {
  return headers["git-protocol"] === "version=2" ? { GIT_PROTOCOL: "version=2" } : {};
}

function decode(path: string): string {
  try {
    return decodeURIComponent(path);
  } catch {
    fail("malformed_http", "the path holds a broken percent-encoding");
  }
}
