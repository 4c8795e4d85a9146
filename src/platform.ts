/**
 * The whole program, wired by hand: read this first. Every part gets what it needs here and nowhere else.
 *
 *   route row → service → store            (rooms: machines/, apps/, auth/ …; stores/ implement their ports)
 */
import { existsSync, readFileSync } from "node:fs";
import { appRoutes } from "#apps/routes.ts";
import { SecretService } from "#apps/secrets.ts";
import { AppService } from "#apps/service.ts";
import type { AppStore } from "#apps/store.ts";
import { createGuard, DEFAULT_ORG } from "#auth/guard.ts";
import { OrgService } from "#auth/orgs.ts";
import { authRoutes } from "#auth/routes.ts";
import type { AuthStore } from "#auth/store.ts";
import { TokenService } from "#auth/tokens.ts";
import { Box } from "#core/box.ts";
import { type Clock, systemClock } from "#core/clock.ts";
import { randomIds } from "#core/ids.ts";
import { type Log, openLog } from "#core/log.ts";
import type { Settings } from "#core/settings.ts";
import { chooseDriver, type DriverChoice } from "#drivers/choice.ts";
import { simDriver } from "#drivers/runtime/sim/driver.ts";
import { simStats } from "#drivers/runtime/sim/stats.ts";
import { simTraffic } from "#drivers/runtime/sim/traffic.ts";
import { hostRoutes } from "#hosts/routes.ts";
import { HostService } from "#hosts/service.ts";
import { Idempotency } from "#http/idempotency.ts";
import { RateLimiter } from "#http/rate.ts";
import type { Row } from "#http/route.ts";
import { platformRoutes } from "#http/routes.ts";
import { createServer, type Server } from "#http/server.ts";
import { MachineRoom } from "#machines/room.ts";
import { machineRoutes } from "#machines/routes.ts";
import { webhookRoutes } from "#machines/webhook-routes.ts";
import { Webhooks } from "#machines/webhooks.ts";
import type { MetricsEngine } from "#metrics/engine/engine.ts";
import { refuseHalfRestored } from "#stores/backup.ts";
import { claimDataDir, type DataDir, masterKey, writeFileDurably } from "#stores/data-dir.ts";
import type { Database } from "#stores/database.ts";
import { checkKey } from "#stores/key-check.ts";
import { migrate } from "#stores/migrations.ts";
import { openDatabase } from "#stores/open.ts";
import { sqlAppStore } from "#stores/sql/apps.ts";
import { sqlAuthStore } from "#stores/sql/auth.ts";
import { sqlHostStore } from "#stores/sql/hosts.ts";
import { sqlIdempotencyStore } from "#stores/sql/idempotency.ts";
import { sqlMachineStore } from "#stores/sql/machines.ts";
import { sqlWebhookStore } from "#stores/sql/webhooks.ts";
import { MeasuredMachines, openMeasuring } from "./measuring.ts";

export interface Platform {
  /** Where it can be reached. */
  base_url: string;
  /** The file with the full-access token. */
  token_file: string;
  driver: DriverChoice;
  database: string;
  log_file: string;
  rows: readonly Row[];
  metrics(): MetricsEngine;
  inject: Server["inject"];
  close(): Promise<void>;
}

export interface PlatformOptions {
  clock?: Clock;
  /** Called once when the store can no longer be trusted; the process should end. */
  onBroken?: (error: Error) => void;
}

const SWEEP_MS = 10 * 60 * 1000;

export async function startPlatform(settings: Settings, options: PlatformOptions = {}): Promise<Platform> {
  const clock = options.clock ?? systemClock;
  const driver = chooseDriver(settings.driver);
  // What was opened is closed in the reverse order: at the end, or at once when the start fails halfway.
  await using opened = new AsyncDisposableStack();
  const dir = claimDataDir(settings.data_dir);
  opened.defer(() => dir.release());
  const log_file = dir.file("hangar.log");
  const log = openLog(log_file, settings.log_level);
  opened.defer(() => {
    log.info({}, "stopped");
    log.close();
  });

  const box = new Box(settings.master_key ?? masterKey(dir));
  const database = await openDatabase(settings, options.onBroken);
  opened.defer(() => database.close());
  await prepare(database, box);

  const authStore = sqlAuthStore(database);
  const appStore = sqlAppStore(database);
  const tokens = new TokenService({ store: authStore, box, clock });
  const orgs = new OrgService({ store: authStore, clock, deleted: (id) => machines.metrics().dropOrg(id) });
  const secrets = new SecretService({ store: appStore, box, clock });
  const machines = await openMachines(database, settings, { clock, log, secrets, authStore, appStore, box, dir });
  const { apps } = machines;
  const guard = createGuard({ tokens, store: authStore, apps: appStore, clock });
  const idempotency = new Idempotency({ store: sqlIdempotencyStore(database), box, clock, runner: dir.node_id });

  const facts = {
    base_url: settings.base_url,
    driver: `${driver.name} (${driver.reason})`,
    database: engine(settings),
  };
  const rows: Row[] = [
    ...platformRoutes(
      () => facts,
      () => rows,
    ),
    ...authRoutes({ orgs, tokens, store: authStore, clock }),
    ...appRoutes({ apps, secrets, orgs }),
    ...machines.rows,
  ];
  const rate = settings.rate_limit > 0 ? { rate: new RateLimiter(settings.rate_limit, clock) } : {};
  const server = createServer({ rows, guard, clock, log, idempotency, ...rate });
  opened.defer(() => machines.close());
  opened.defer(() => server.close());

  if (!(await authStore.findOrg(DEFAULT_ORG))) await orgs.create({ name: DEFAULT_ORG }, randomIds(clock));
  const token_file = dir.file("token");
  await ensureToken(tokens, token_file, clock);

  await machines.start();
  const { host, port } = await server.listen(settings.listen.host, settings.listen.port);
  const address = reachable(host, port);
  facts.base_url ||= address;
  writeFileDurably(dir.file("address"), `${address}\n`); // Where the command finds this platform.
  opened.defer(keepSweeping(idempotency, clock, log));
  log.info({ base_url: facts.base_url, driver: driver.name }, "ready");

  const running = opened.move();
  return {
    base_url: facts.base_url,
    token_file,
    driver,
    database: `${facts.database}${settings.database_url ? "" : ` in ${settings.data_dir}`}`,
    log_file,
    rows,
    metrics: machines.metrics,
    inject: server.inject,
    close: () => running.disposeAsync(),
  };
}

/** Brings the tables to this version, and refuses a database that is half restored or sealed with another key. */
async function prepare(database: Database, box: Box): Promise<void> {
  await migrate(database);
  await refuseHalfRestored(database);
  await checkKey(database, box);
}

const engine = ({ database_url }: Settings): string => (database_url ? "PostgreSQL" : "SQLite");

interface MachineNeeds {
  dir: DataDir;
  clock: Clock;
  log: Log;
  box: Box;
  secrets: SecretService;
  authStore: AuthStore;
  appStore: AppStore;
}

interface MachinesPart {
  apps: AppService;
  rows: Row[];
  metrics(): MetricsEngine;
  /** Nothing runs before. */
  start(): Promise<void>;
  close(): Promise<void>;
}

/** Apps, hosts, machines and where their events are sent: what runs, and where. */
async function openMachines(
  database: Database,
  settings: Settings,
  { dir, clock, log, box, secrets, authStore, appStore }: MachineNeeds,
): Promise<MachinesPart> {
  const hosts = new HostService({ store: sqlHostStore(database), declared: settings.hosts });
  await hosts.start();
  const store = sqlMachineStore(database);
  const room = new MachineRoom({
    store,
    hosts,
    // Nothing of it outlives this process, so what was running is taken back by what its handle tells.
    driver: simDriver({ clock, adopt: true }),
    clock,
    log,
    secrets: (app_id) => secrets.reveal(app_id),
  });
  const apps = new AppService({
    store: appStore,
    clock,
    occupancy: async (app_id) => ({ machines: await room.machines.count(app_id), volumes: 0 }),
    clear: (app_id) => room.clear(app_id),
  });
  const { events, bus } = room;
  const webhooks = new Webhooks({ store: sqlWebhookStore(database), events, bus, box, clock, log });
  const running = new MeasuredMachines({ host_ids: hosts.own, store, bus });
  const measuring = openMeasuring({
    dir: dir.file("metrics"),
    metrics_url: settings.metrics_url,
    tenant: async (id) => (await authStore.orgs()).find((org) => org.id === id)?.numeric_id ?? 0,
    clock,
    log,
    secrets,
    machines: running,
    stats: simStats({ clock }),
    reach: () => undefined,
    volumes: async () => [],
    providers: [simTraffic({ clock, machines: running.list })],
  });
  return {
    apps,
    metrics: measuring.engine,
    rows: [
      ...hostRoutes({ hosts, onState: (id, state) => room.hostState(id, state) }),
      ...machineRoutes(room.routeParts(apps)),
      ...webhookRoutes({ apps }, webhooks),
      ...measuring.rows,
    ],
    async start() {
      await room.start();
      await webhooks.start();
      await measuring.start();
    },
    async close() {
      webhooks.close();
      await room.close();
      await measuring.close();
    },
  };
}

/** The full-access token of this data dir: made at first start, and again when the database does not know it. */
async function ensureToken(tokens: TokenService, file: string, clock: Clock): Promise<void> {
  if (existsSync(file)) {
    const known = await tokens.verify(readFileSync(file, "utf8").trim()).catch(() => undefined);
    if (known) return;
  }
  writeFileDurably(file, `${await tokens.createFull("first start", randomIds(clock))}\n`);
}

/** Forgets old repeated requests now and then; answers what ends it. */
function keepSweeping(idempotency: Idempotency, clock: Clock, log: Log): () => void {
  const stopping = new AbortController();
  const { signal } = stopping;
  const sweep = async (): Promise<void> => {
    while (!signal.aborted) {
      await clock.sleep(SWEEP_MS, signal).catch(() => {});
      if (signal.aborted) return;
      await idempotency
        .expire()
        .catch((error: unknown) => log.warn({ error }, "old repeated requests could not be forgotten"));
    }
  };
  void sweep();
  return () => stopping.abort();
}

/** Listening everywhere is not an address one can call. */
function reachable(host: string, port: number): string {
  const name = { "0.0.0.0": "127.0.0.1", "::": "[::1]" }[host] ?? (host.includes(":") ? `[${host}]` : host);
  return `http://${name}:${port}`;
}
