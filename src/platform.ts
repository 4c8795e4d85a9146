/**
 * The whole program, wired by hand: read this first. Every part gets what it needs here and nowhere else.
 *
 *   route row → service → store            (modules: machines/, apps/, auth/ …; stores/ implement their ports)
 */
import { existsSync, readFileSync } from "node:fs";
import { appRoutes } from "#apps/routes.ts";
import { SecretService } from "#apps/secrets.ts";
import { createGuard, DEFAULT_ORG } from "#auth/guard.ts";
import { OrgService } from "#auth/orgs.ts";
import { authRoutes } from "#auth/routes.ts";
import { SignInCodes } from "#auth/sign-in.ts";
import { TokenService } from "#auth/tokens.ts";
import { type Clock, systemClock } from "#core/clock.ts";
import type { ErrorCode } from "#core/error-catalogue.ts";
import { ApiError } from "#core/errors.ts";
import { randomIds } from "#core/ids.ts";
import { LIMITS } from "#core/limits.ts";
import { type Log, openLog } from "#core/log.ts";
import { ioText } from "#core/machine-settings.ts";
import { Sealer } from "#core/sealer.ts";
import type { Settings } from "#core/settings.ts";
import { chooseDriver, type DriverChoice } from "#drivers/choice.ts";
import type { Fence } from "#hosts/fence.ts";
import { Dashboard } from "#http/dashboard.ts";
import { Idempotency } from "#http/idempotency.ts";
import type { PlatformFacts } from "#http/platform-facts.ts";
import { RateLimiter } from "#http/rate.ts";
import { type NotReady, Readiness, type ReadinessCheck } from "#http/readiness.ts";
import type { Row } from "#http/route.ts";
import { platformRoutes } from "#http/routes.ts";
import { createServer, type Server } from "#http/server.ts";
import type { RuntimeDriver } from "#machines/runtime/driver.ts";
import type { ImageSource } from "#machines/runtime/image-source.ts";
import type { LocalApi } from "#machines/runtime/local-api.ts";
import type { MetricsEngine } from "#metrics/engine/engine.ts";
import type { Reach } from "#proxy/exposure.ts";
import type { ProxyModule } from "#proxy/module.ts";
import { registryRoutes } from "#registry/routes.ts";
import { leaseRoutes } from "#replication/election/lease-routes.ts";
import { refuseHalfRestored } from "#stores/backup.ts";
import { claimDataDir, type DataDir, writeFileDurably } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { checkKey } from "#stores/key-check.ts";
import { migrate } from "#stores/migrate.ts";
import { openDatabase } from "#stores/open.ts";
import { sqlAppStore } from "#stores/sql/apps.ts";
import { sqlAuthStore } from "#stores/sql/auth.ts";
import { sqlLeaseRows } from "#stores/sql/db-leases.ts";
import { prepareEventLog } from "#stores/sql/event-log.ts";
import { sqlIdempotencyStore } from "#stores/sql/idempotency.ts";
import { sqlPrefetch } from "#stores/sql/prefetch.ts";
import { openAlerts } from "#wiring/alerts.ts";
import { DatabaseWait } from "#wiring/database-wait.ts";
import { openDeployments } from "#wiring/deployments.ts";
import type { Emulated } from "#wiring/emulated.ts";
import { type FlyPart, openFlyListener } from "#wiring/fly.ts";
import { openGit } from "#wiring/git.ts";
import { serveHostStatus } from "#wiring/host-status.ts";
import { openIdentity } from "#wiring/identity.ts";
import { openMachines } from "#wiring/machines.ts";
import { openReleases } from "#wiring/releases.ts";
import { sealingKey, shareBaseUrl } from "#wiring/roles.ts";
import { openSprites } from "#wiring/sprites.ts";

export interface Platform {
  /** Its URL; for a host, that of the API. */
  base_url: string;
  /** That of the listener for Fly's clients, if there is one. */
  fly_url: string | undefined;
  /** The file with the full-access token; empty for a host, which has no API. */
  token_file: string;
  /** The hosts of this process. */
  host_ids: readonly string[];
  driver: DriverChoice;
  database: string;
  log_file: string;
  rows: readonly Row[];
  metrics(): MetricsEngine;
  /** The API inside machines. */
  local_api: LocalApi;
  /** Current counters of the edge proxy. */
  proxySamples: ProxyModule["proxySamples"];
  inject: Server["inject"];
  /** What is not ready, and why; empty when all is. */
  notReady(): Promise<NotReady[]>;
  /** Resolves when the store responds, even with a refusal; never while it hangs. */
  alive(): Promise<unknown>;
  /** Resolves when every public port is open. */
  listening(): Promise<void>;
  /** Closes everything but the public listeners, which keep serving; returns the function that closes those. */
  handOver(): Promise<() => Promise<void>>;
  close(): Promise<void>;
}

export interface PlatformOptions {
  clock?: Clock;
  /** Called once when the store can no longer be trusted; the process should exit. */
  onBroken?: (error: Error) => void;
  /** Called when the start waits for the database, with the consequences. */
  onWaiting?: (text: string) => void;
  /** Image source, if not the store of this data dir. */
  images?: ImageSource;
  /** Where a machine's port is, if not at its private address. */
  reach?: Reach;
  /** Wraps the driver, and replaces the fence, for tests. */
  around?: (driver: RuntimeDriver) => RuntimeDriver;
  fence?: Fence;
  /** Replaces the host in the emulator. */
  emulated?: Emulated;
}

const SWEEP_MS = 10 * 60 * 1000;

export async function startPlatform(settings: Settings, options: PlatformOptions = {}): Promise<Platform> {
  const { clock = systemClock, onWaiting = () => {} } = options;
  await using held = new AsyncDisposableStack();
  const dir = claimDataDir(settings.data_dir);
  held.defer(() => dir.release());
  const log = keepLog(dir.file("hangar.log"), settings, held);
  const wait = new DatabaseWait({ settings, dir, clock, log, onWaiting });
  held.defer(() => wait.close());
  const { proxy, running, ...platform } = await wait.start(() =>
    startOnce(settings, options, { dir, log, clock, wait }),
  );
  held.defer(() => running.disposeAsync());
  void proxy.workers.settled().then(() => wait.leave());
  return { ...platform, ...edgeAddress(proxy, held.move()) };
}

interface Surroundings {
  dir: DataDir;
  log: ReturnType<typeof openLog>;
  clock: Clock;
  wait: DatabaseWait;
}

type Started = Omit<Platform, keyof ReturnType<typeof edgeAddress>> & {
  proxy: ProxyModule;
  running: AsyncDisposableStack;
};

async function startOnce(
  settings: Settings,
  options: PlatformOptions,
  { dir, log, clock, wait }: Surroundings,
): Promise<Started> {
  const choice = chooseDriver(settings.driver);
  // Closed in reverse order: at the end, or when the start fails.
  await using opened = new AsyncDisposableStack();
  const database = options.emulated?.database ?? (await openStore(settings, options, log));
  opened.defer(() => database.close());
  const master_key = await prepare(database, settings, dir, clock);
  const sealer = new Sealer(master_key);

  const authStore = sqlAuthStore(database);
  const appStore = sqlAppStore(database);
  const tokens = new TokenService({ store: authStore, sealer, clock });
  const orgs = new OrgService({ store: authStore, clock, deleted: (id) => machines.metrics().dropOrg(id) });
  const secrets = new SecretService({ store: appStore, sealer, clock });
  const facts = factsOf(settings, choice, clock);
  const inside = openIdentity(database, settings, facts, { dir, sealer, clock, log, tokens, orgs, authStore, secrets });
  const { local: local_api, network_listeners, machine_authenticator } = inside;
  const guard = createGuard({ tokens, store: authStore, apps: appStore, clock, prefetch: sqlPrefetch(database) });
  const { push_guard, guardOf } = inside.guards(guard);
  const kept = { authStore, appStore, tokens, secrets, sealer, master_key, facts, local_api, network_listeners, guard };
  const needs = { ...options, ...kept, push_guard, clock, log, choice, dir, last_known: wait.tables(sealer) };
  const machines = await openMachines(database, settings, needs);
  const idempotency = new Idempotency({ store: sqlIdempotencyStore(database), sealer, clock, runner: dir.node_id });
  const alerts = openAlerts(database, settings, { ...kept, ...machines, dir, clock, log });
  const { deployments, rows: deployment_rows } = openDeployments(database, { ...kept, orgs, dir, clock, log });
  const { git, rows: git_rows } = openGit(database, settings, { ...kept, ...machines, orgs, dir, clock, log });
  const releases = openReleases(database, { clock, log });
  const sprites = openSprites(database, settings, { ...machines, guard, clock, log });
  const dashboard = new Dashboard();
  const readiness = new Readiness([databaseCheck(database), ...machines.readiness], clock);
  const rows: Row[] = [
    ...platformRoutes({ facts, dashboard, readiness, rows: () => rows }),
    ...authRoutes({ orgs, tokens, store: authStore, apps: appStore, clock, codes: new SignInCodes(clock) }),
    ...appRoutes({ apps: machines.apps, secrets, orgs }),
    ...[releases.rows, machines.rows, sprites.rows].flat(),
    ...[registryRoutes(machines.registry, guard, clock), git_rows, alerts.rows, deployment_rows, inside.rows].flat(),
    ...leaseRoutes({ rows: sqlLeaseRows(database), clock }),
  ];
  const shared = { rows, guard, guardOf, idempotency, clock, log, ...rateLimiter(settings, clock) };
  const server = createServer({ ...shared, machine_authenticator, dashboard, around: options.emulated?.around });
  const fly = openFlyListener(database, settings, { ...shared, sealer });
  const closing = [inside, machines, sprites, alerts, git, deployments, releases.leases, fly, server];
  for (const part of closing) opened.defer(() => part.close());
  if (!(await authStore.findOrg(DEFAULT_ORG))) await orgs.create({ name: DEFAULT_ORG }, randomIds(clock));
  const token_file = settings.role === "host" ? "" : await ensureToken(tokens, dir.file("token"), clock);

  await inside.start(rows, shared);
  for (const part of [machines, sprites, git, deployments, alerts, releases.leases]) await part.start();
  await wait.leaveApi();
  const fly_url = await openApi(server, settings, { dir, facts, database, emulated: options.emulated, fly, git });
  opened.defer(await serveHostStatus(settings, { ...machines, dir, log, readiness, facts }));
  opened.defer(keepSweeping([idempotency, tokens, inside, git], clock, log));
  opened.defer(() => database.hurry?.(LIMITS.shutdown_ms));
  log.info({ base_url: facts.base_url, driver: choice.name }, "ready");

  return {
    base_url: facts.base_url,
    fly_url,
    token_file,
    host_ids: machines.host_ids,
    driver: choice,
    database: `${facts.database}${settings.database_url ? "" : ` in ${settings.data_dir}`}`,
    log_file: dir.file("hangar.log"),
    rows,
    metrics: machines.metrics,
    local_api,
    inject: server.inject,
    notReady: () => readiness.problems(),
    alive: () => database.write(NOTHING),
    proxy: machines.proxy,
    running: opened.move(),
  };
}

/** A write without effect: it checks the writer thread or the connection to PostgreSQL. */
const NOTHING = [{ sql: "SELECT 1" }];

/** The public listeners, hand-over and shutdown. */
function edgeAddress(
  proxy: ProxyModule,
  running: AsyncDisposableStack,
): Pick<Platform, "proxySamples" | "listening" | "handOver" | "close"> {
  return {
    proxySamples: (now) => proxy.proxySamples(now),
    listening: () => proxy.workers.settled(),
    async handOver() {
      proxy.stay();
      await running.disposeAsync();
      return () => proxy.leave();
    },
    close: () => running.disposeAsync(),
  };
}

/** The log, whose last line says that the platform stopped. */
function keepLog(file: string, { log_level }: Settings, opened: AsyncDisposableStack): ReturnType<typeof openLog> {
  const log = openLog(file, log_level);
  opened.defer(() => {
    log.info({}, "stopped");
    log.close();
  });
  return log;
}

/** Opens the configured database. After a failure all users of it fail. */
async function openStore(
  settings: Settings,
  { onBroken }: PlatformOptions,
  log: ReturnType<typeof openLog>,
): Promise<Database> {
  const broken = (error: Error): void => {
    log.quiet();
    onBroken?.(error);
  };
  return await openDatabase(settings, broken, {
    onPooler: () => log.info({}, "a pooler in transaction mode is in front of PostgreSQL: statements are not prepared"),
    onOldPrimary: (text) => log.error({}, text),
    onStuck: (sessions) =>
      log.warn(
        { sessions },
        "database sessions of a process that stands still were ended: others waited for their locks",
      ),
  });
}

/** Migrates the tables, refuses a half-restored database or another master key, and returns the key. */
async function prepare(database: Database, settings: Settings, dir: DataDir, clock: Clock): Promise<Buffer> {
  await migrate(database);
  await refuseHalfRestored(database);
  await prepareEventLog(database);
  const key = await sealingKey(database, settings, dir, clock);
  await checkKey(database, new Sealer(key));
  return key;
}

/** Facts about the platform; its URL is known once it listens. */
const factsOf = (settings: Settings, { name, reason }: DriverChoice, clock: Clock): PlatformFacts => ({
  base_url: settings.base_url,
  own_url: "",
  driver: `${name} (${reason})`,
  database: settings.database_url ? "PostgreSQL" : "SQLite",
  data_dir: settings.data_dir,
  machine_io: ioText(settings.machine_io),
  started_ms: clock.now(),
});

/** A read, like that of every request. */
const databaseCheck = (database: Database): ReadinessCheck => ({
  part: "database",
  problem: () =>
    database.read("SELECT 1").then(
      () => undefined,
      (thrown: unknown) => (thrown instanceof ApiError ? REASONS[thrown.code] : undefined) ?? "it cannot be read",
    ),
});

const REASONS: Partial<Record<ErrorCode, string>> = {
  storage_failed: "it cannot be reached",
  overloaded: "it has no connection left (HANGAR_DATABASE_CONNECTIONS, max_connections)",
  shutting_down: "the platform is shutting down",
};

/** The full-access token of this data dir: created at first start, and again when the database does not know it. */
async function ensureToken(tokens: TokenService, file: string, clock: Clock): Promise<string> {
  if (existsSync(file)) {
    const known = await tokens.verify(readFileSync(file, "utf8").trim()).catch(() => undefined);
    if (known) return file;
  }
  writeFileDurably(file, `${await tokens.createFull("first start", randomIds(clock))}\n`);
  return file;
}

const rateLimiter = ({ rate_limit }: Settings, clock: Clock): { rate?: RateLimiter } =>
  rate_limit > 0 ? { rate: new RateLimiter(rate_limit, clock) } : {};

/** Deletes expired data regularly. Returns the function that stops it. */
function keepSweeping(kept: readonly { expire(): Promise<unknown> }[], clock: Clock, log: Log): () => void {
  const stopping = new AbortController();
  const { signal } = stopping;
  const sweep = async (): Promise<void> => {
    while (!signal.aborted) {
      await clock.sleep(SWEEP_MS, signal).catch(() => {});
      if (signal.aborted) return;
      for (const one of kept)
        await one.expire().catch((error: unknown) => log.warn({ error }, "what is old could not be forgotten"));
    }
  };
  void sweep();
  return () => stopping.abort();
}

interface ApiParts {
  dir: DataDir;
  facts: PlatformFacts;
  database: Database;
  emulated: Emulated | undefined;
  fly: FlyPart;
  /** Goes on with deploys that an earlier process had not finished. */
  git: { resume(): Promise<void> };
}

/**
 * Listens, unless this process is only a host, and tells the other processes the address of the API. Returns the URL of
 * the listener for Fly's clients, if there is one.
 */
async function openApi(
  server: Server,
  settings: Settings,
  { dir, facts, database, emulated, fly, git }: ApiParts,
): Promise<string | undefined> {
  if (settings.role !== "host") facts.own_url = await listen(server, settings, dir, emulated);
  facts.base_url ||= facts.own_url;
  if (settings.database_url) await shareBaseUrl(database, settings, facts);
  await git.resume();
  return await fly.start();
}

/** Listens, and writes the address where the CLI finds it. */
async function listen(server: Server, settings: Settings, dir: DataDir, emulated?: Emulated): Promise<string> {
  const { host, port } = settings.listen;
  const address = reachable(await (emulated?.listen(server) ?? server.listen(host, port)));
  writeFileDurably(dir.file("address"), `${address}\n`);
  return address;
}

/** A wildcard address cannot be connected to. */
function reachable({ host, port }: { host: string; port: number }): string {
  const name = { "0.0.0.0": "127.0.0.1", "::": "[::1]" }[host] ?? (host.includes(":") ? `[${host}]` : host);
  return `http://${name}:${port}`;
}
