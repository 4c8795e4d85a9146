import { readdir, stat } from "node:fs/promises";
import { join } from "node:path";
import { Worker } from "node:worker_threads";
import { gunzipSync } from "node:zlib";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { fail } from "#core/errors.ts";
import type { Built } from "./dashboard-build.ts";

const WEB = join(import.meta.dirname, "../../web");

/**
 * Content security policy: scripts and styles only from this origin, none inline, so that a name chosen by a user is
 * never executed.
 */
export const DASHBOARD_HEADERS = {
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'",
  "x-content-type-options": "nosniff",
  "referrer-policy": "no-referrer",
  "cross-origin-opener-policy": "same-origin",
  "cache-control": "no-cache",
} as const;

/** The dashboard's files: built at the first request, and again after a source has changed. */
export class Dashboard {
  #built: Promise<Built> | undefined;
  #sources_ms = 0;

  /** The single HTML page; it loads files and calls the API. */
  async page(): Promise<string> {
    const newest_ms = await newest();
    if (!this.#built || newest_ms > this.#sources_ms) {
      this.#sources_ms = newest_ms;
      this.#built = inThread();
      // The next request retries a failed build.
      this.#built.catch(() => {
        this.#sources_ms = 0;
      });
    }
    return (await this.#built).page;
  }

  /** Adds the file routes. They are not part of the API: their URLs change with their content. */
  serve(app: FastifyInstance): void {
    app.get("/assets/:build/*", async (request, reply) => await this.#send(request, reply));
    app.get("/ui/:org_slug", (request, reply) => reply.redirect(linkedPage(request)));
    app.get("/ui/:org_slug/graph", (request, reply) => reply.redirect(linkedPage(request)));
  }

  async #send(request: FastifyRequest, reply: FastifyReply): Promise<FastifyReply> {
    const params = request.params as { build: string; "*": string };
    const built = await this.#built;
    const file = built?.id === params.build ? built.files.get(params["*"]) : undefined;
    if (!file)
      fail("not_found", "this file belongs to another build of the dashboard", { hint: "load the page again" });
    const accepted = String(request.headers["accept-encoding"] ?? "");
    const encoding = (["br", "gzip"] as const).find((name) => new RegExp(`\\b${name}\\b`).test(accepted));
    reply.headers({
      "content-type": file.type,
      "cache-control": "public, max-age=31536000, immutable",
      vary: "accept-encoding",
      "x-content-type-options": "nosniff",
      ...(encoding ? { "content-encoding": encoding } : {}),
    });
    return reply.send(encoding ? Buffer.from(file[encoding]) : gunzipSync(file.gzip));
  }
}

/** Targets of links in alerts: `$externalURL` is the organization's alerts, Prometheus' `graphLink` a query. */
function linkedPage({ params, query }: FastifyRequest): string {
  const { org_slug: org } = params as { org_slug: string };
  const expr = (query as Record<string, unknown>)["g0.expr"];
  return typeof expr === "string"
    ? `/#/metrics/explore?${new URLSearchParams({ query: expr, org }).toString()}`
    : `/#/alerts?${new URLSearchParams({ org }).toString()}`;
}

/** Modification time of the newest source. */
async function newest(): Promise<number> {
  const entries = await readdir(WEB, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile());
  const times = await Promise.all(files.map(async (entry) => (await stat(join(entry.parentPath, entry.name))).mtimeMs));
  return Math.max(...times);
}

function inThread(): Promise<Built> {
  return new Promise((resolve, reject) => {
    // Suppresses Node's experimental warning about type stripping.
    const execArgv = ["--disable-warning=ExperimentalWarning"];
    const worker = new Worker(join(import.meta.dirname, "dashboard-build.ts"), { execArgv });
    worker.once("message", resolve).once("error", reject);
    worker.once("exit", (code) => reject(new Error(`the build of the dashboard ended with ${code}`)));
  });
}
