/**
 * A start while PostgreSQL is away, in a data dir where the platform was ready before: the process waits for it instead of
 * ending, serves apps by what its edge proxy knew last, and says so on the API's address. Once the platform is up, its own
 * listeners have the same ports, and those of here finish what they have.
 */
import { existsSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { Clock } from "#core/clock.ts";
import type { ErrorCode } from "#core/error-catalogue.ts";
import { ApiError, errorBody } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import type { Log } from "#core/log.ts";
import { Sealer } from "#core/sealer.ts";
import type { Settings } from "#core/settings.ts";
import { VERSION } from "#core/version.ts";
import { HTTP_BOUNDS, refuseBytes, strictly } from "#http/strict-server.ts";
import { LastKnownTables } from "#proxy/last-known.ts";
import { Slots } from "#proxy/slots.ts";
import { Workers } from "#proxy/workers.ts";
import { selfSigned } from "#proxy/x509.ts";
import { type DataDir, masterKey } from "#stores/data-dir.ts";
import { buckets } from "./proxy.ts";

interface WaitParts {
  settings: Settings;
  dir: DataDir;
  clock: Clock;
  log: Log;
  /** Called each time that it begins to wait, with the reason. */
  onWaiting: (text: string) => void;
}

/** Errors after which the database may come back by itself. */
const AWAY = new Set<ErrorCode>(["storage_failed", "overloaded"]);
const FILE = "last-known-routes";
const NOT_STARTED = new ApiError(
  "storage_failed",
  "the database cannot be reached; the platform starts when it is back",
);
const NOT_READY = new ApiError("not_ready", "the platform is not ready: database: it cannot be reached", {
  facts: { ok: false, reasons: [{ part: "database", reason: "it cannot be reached" }] },
});

export class DatabaseWait {
  readonly #parts: WaitParts;
  /** A new one for each attempt: a failed start has closed its own. */
  #known: LastKnownTables | undefined;
  #workers: Workers | undefined;
  #api: Server | undefined;

  constructor(parts: WaitParts) {
    this.#parts = parts;
  }

  /** The stored tables of the edge proxy; with SQLite the database itself is local. */
  tables(sealer: Sealer): LastKnownTables | undefined {
    const { settings, dir, clock, log } = this.#parts;
    if (!settings.database_url) return undefined;
    return new LastKnownTables({ file: dir.file(FILE), sealer, clock, log });
  }

  /** Starts the platform, with retries while the database is unreachable. */
  async start<T>(attempt: () => Promise<T>): Promise<T> {
    // A host listens nowhere yet: nothing else would keep its process alive between two attempts.
    const alive = setInterval(() => {}, LIMITS.database_wait_ms);
    try {
      for (;;) {
        try {
          await this.#probe();
          return await attempt();
        } catch (thrown) {
          if (!this.#isAway(thrown)) throw thrown;
          await this.#serve(thrown);
        }
        await this.#known?.confirm();
        await this.#parts.clock.sleep(LIMITS.database_wait_ms);
      }
    } finally {
      clearInterval(alive);
    }
  }

  /** Releases the API's address for the platform. */
  async leaveApi(): Promise<void> {
    const server = this.#api;
    this.#api = undefined;
    if (!server) return;
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }

  /** The platform serves all ports itself: ours drain. */
  leave(): void {
    const workers = this.#workers;
    this.#workers = undefined;
    workers
      ?.close(true)
      .catch((error: unknown) => this.#parts.log.warn({ error }, "old listeners could not be closed"));
  }

  async close(): Promise<void> {
    await this.leaveApi();
    await this.#workers?.close();
  }

  /** A start retries for long; a quick probe lets apps be served meanwhile. */
  async #probe(): Promise<void> {
    const { database_url } = this.#parts.settings;
    if (!database_url || !this.#wasReady) return;
    const { openPostgres } = await import("#stores/postgres/database.ts");
    const options = { connections: 1, name: "hangar start", call_ms: LIMITS.postgres_connect_ms };
    await (await openPostgres(database_url, options)).close();
  }

  /** The key existed then; creating one now would hide that it is missing. */
  get #wasReady(): boolean {
    const { dir, settings } = this.#parts;
    return existsSync(dir.file(FILE)) && (settings.master_key !== undefined || existsSync(dir.file("master.key")));
  }

  #isAway(thrown: unknown): thrown is ApiError {
    const { database_url } = this.#parts.settings;
    return Boolean(database_url) && thrown instanceof ApiError && AWAY.has(thrown.code) && this.#wasReady;
  }

  async #serve(problem: ApiError): Promise<void> {
    const { settings, log, onWaiting } = this.#parts;
    if (settings.role !== "host" && !this.#api) this.#api = await this.#answer();
    if (this.#workers) return;
    const said = await this.#serveApps();
    log.warn({ error: problem }, `waiting for the database; ${said}`);
    onWaiting(`${problem.message}; waiting for it. ${said}`);
  }

  /** Serves apps from the stored tables; returns a description. */
  async #serveApps(): Promise<string> {
    const { settings, dir, clock, log } = this.#parts;
    const { proxy } = settings;
    this.#known = this.tables(new Sealer(settings.master_key ?? masterKey(dir)));
    const known = (await this.#known?.load()) ?? { problem: "there are none" };
    const { region, host_id, apps, certificates } =
      "problem" in known ? { region: "", host_id: "", apps: [], certificates: [] } : known;
    this.#workers = new Workers({
      settings: {
        listen_host: proxy.listen_host,
        fallback: selfSigned([proxy.domain, `*.${proxy.domain}`], clock.now()),
        region,
        host_id,
        buckets: buckets(settings),
        traces: undefined,
      },
      count: proxy.workers,
      slots: new Slots(),
      clock,
      log,
      keepColour: async () => {},
      // Autostart needs the database, so such requests wait.
      onReport: () => {},
    });
    this.#workers.setCertificates(certificates);
    for (const app of apps) this.#workers.setApp(app);
    await this.#workers.settled();
    if ("problem" in known) return `Apps are not served meanwhile: of the routes known last, ${known.problem}.`;
    return `Meanwhile ${apps.length} apps are served by the routes known last.`;
  }

  /** Answers at the API's address with the reason; undefined when the address is in use. */
  async #answer(): Promise<Server | undefined> {
    const { host, port } = this.#parts.settings.listen;
    const server = createServer(
      HTTP_BOUNDS,
      strictly((request, response) => {
        const alive = request.url === "/healthz";
        const error = request.url === "/readyz" ? NOT_READY : NOT_STARTED;
        const body = alive ? { ok: true, version: VERSION } : errorBody(error, "");
        const headers = { "content-type": "application/json", connection: "close", "retry-after": "2" };
        response.writeHead(alive ? 200 : error.http, headers).end(`${JSON.stringify(body)}\n`);
      }),
    ).on("clientError", refuseBytes);
    return await new Promise((resolve) => {
      server.once("error", () => resolve(undefined)).listen(port, host, () => resolve(server));
    });
  }
}
