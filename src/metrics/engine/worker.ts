/** The worker thread that owns all metrics: it stores samples and evaluates queries; no other thread uses the files. */
import { parentPort, workerData } from "node:worker_threads";
import { type Clock, systemClock } from "#core/clock.ts";
import { QUERY_LIMITS } from "../promql/limits.ts";
import { freeSpareSlabs } from "../tsdb/chunk/slabs.ts";
import { StorageError } from "../tsdb/files.ts";
import { EMPTY_STATUS } from "../tsdb/index/status.ts";
import type { ImportResult } from "../tsdb/ingest/importer.ts";
import { TSDB_LIMITS } from "../tsdb/limits.ts";
import type { OrgDatabase } from "../tsdb/org-database.ts";
import { Tsdb } from "../tsdb/tsdb.ts";
import type { Evaluator } from "./evaluator.ts";
import { IdleMemory, idleParts } from "./idle-memory.ts";
import {
  type Calls,
  type CrossedError,
  EMPTY_SOURCE,
  type Method,
  type OrgText,
  type Reply,
  type Request,
  type WorkerSettings,
} from "./protocol.ts";
import { QueryCaches } from "./query-caches.ts";

const settings = workerData as WorkerSettings;
const { evaluator } = (await import(settings.evaluator_url)) as { evaluator: Evaluator };
const flags = new Int32Array(settings.flags);
const clock: Clock = { ...systemClock, now: () => systemClock.now() + settings.clock_offset_ms };
const tsdb = new Tsdb(settings.dir, clock, settings.limits);

type Handlers = {
  [M in Method]: (cancelled: () => boolean, ...args: Calls[M]["args"]) => Promise<Calls[M]["answer"]>;
};

/** The result, or `nothing` when the org has no metrics: a query does not create a directory. */
async function query<T>(org: string, read: (database: OrgDatabase) => T, nothing: T): Promise<T> {
  const database = await tsdb.existing(org);
  return database ? read(database) : nothing;
}

async function done(work: Promise<unknown>): Promise<undefined> {
  await work;
}

async function importText(bytes: Uint8Array, { org, start, end, options }: OrgText): Promise<ImportResult> {
  return (await tsdb.org(org)).importText(bytes.subarray(start, end), options);
}

const NO_SERIES = Buffer.from("[]");
const memories = new QueryCaches(QUERY_LIMITS.cache_bytes);

const handlers: Handlers = {
  append: async (_, org, batch) => (await tsdb.org(org)).append(batch),
  importTexts: async (_, bytes, texts) => {
    const outcomes: Calls["importTexts"]["answer"]["outcomes"] = [];
    for (const text of texts) outcomes.push(await importText(bytes, text).catch(crossing));
    return { outcomes, bytes };
  },
  importRemoteWrite: async (_, org, body) => (await tsdb.org(org)).importRemoteWrite(body),
  endTarget: async (_, org, target, time) => (await tsdb.org(org)).endTarget(target, time),
  query: async (cancelled, org, request) => {
    const database = await tsdb.existing(org);
    if (!database) return evaluator.evaluate(EMPTY_SOURCE, request, cancelled, undefined);
    return evaluator.evaluate(database.source, request, cancelled, memories.of(database));
  },
  series: (_, org, scope) => query<Uint8Array>(org, ({ queries: cache }) => cache.series(scope), NO_SERIES),
  labelNames: (_, org, scope) => query(org, ({ queries: cache }) => cache.labelNames(scope), "[]"),
  labelValues: (_, org, name, scope) => query(org, ({ queries: cache }) => cache.labelValues(name, scope), "[]"),
  metadata: (_, org) => query(org, ({ metadata }) => metadata.list, []),
  status: (_, org, request) => query(org, (database) => database.status(request), EMPTY_STATUS),
  federate: (_, org, { selector, at_ms, lookback_ms }) =>
    query(org, (database) => database.federate(selector, at_ms, lookback_ms), ""),
  flush: (_, org) => done(tsdb.flush(org)),
  compact: (_, org) => done(query(org, ({ partition }) => partition.compact(), Promise.resolve())),
  dropOrg: (_, org) => done(tsdb.drop(org)),
  close: () => {
    clearInterval(maintenance);
    return done(tsdb.close());
  },
};

function handle<M extends Method>({ method, args, flag }: Request<M>): Promise<Calls[M]["answer"]> {
  const cancelled = (): boolean => Atomics.load(flags, flag) !== 0;
  if (cancelled()) return Promise.reject(new Error("cancelled"));
  return handlers[method](cancelled, ...args);
}

function crossing(thrown: unknown): CrossedError {
  if (!(thrown instanceof Error)) return { name: "Error", message: String(thrown) };
  const { name, message } = thrown;
  const details = "details" in thrown ? { details: thrown.details } : {};
  return { name, message, ...(thrown instanceof StorageError ? { full: thrown.full } : {}), ...details };
}

/** Large results are transferred instead of copied, with their unused memory; small ones may be in Node's pool. */
function transferable(answer: unknown): ArrayBuffer[] {
  if (typeof answer === "object" && answer !== null && "bytes" in answer) return transferable(answer.bytes);
  if (!(answer instanceof Uint8Array) || !(answer.buffer instanceof ArrayBuffer)) return [];
  return answer.byteLength > Buffer.poolSize ? [answer.buffer] : [];
}

/** Frees a processed body at once: as garbage, a second's worth outweighs all series. */
function free(body: unknown): void {
  if (body instanceof Uint8Array && body.buffer instanceof ArrayBuffer && !body.buffer.detached)
    body.buffer.transfer(0);
}

/** Dashboards repeat queries, so the memory for results is freed only after a while. */
const LARGE_ANSWERS: ReadonlySet<Method> = new Set(["query", "series", "federate"]);
const quietAfter = (method: Method): number => (LARGE_ANSWERS.has(method) ? 60_000 : 500);

const parts = idleParts(clock);
const idle = new IdleMemory({
  ...parts,
  collect() {
    freeSpareSlabs();
    return parts.collect();
  },
});

async function answer(request: Request): Promise<void> {
  const { id, args } = request;
  try {
    const value = await handle(request);
    parentPort?.postMessage({ id, answer: value } satisfies Reply, transferable(value));
  } catch (thrown) {
    parentPort?.postMessage({ id, error: crossing(thrown) } satisfies Reply);
  }
  args.forEach(free);
  idle.worked(quietAfter(request.method));
}

/** These wait for the disk; others do not wait for them. */
const SLOW: ReadonlySet<Method> = new Set(["flush", "compact", "dropOrg", "close"]);
/** How long requests may occupy the thread before timers and compaction run. */
const TURN_MS = 20;
/** A port delivers messages without pause: after a gap, the thread has been free. */
const PAUSE_MS = 1;
const waiting: Request[] = [];
/** Since when requests occupy the thread, and when the last one ended. */
const held = { since: 0, until: 0 };

/**
 * Runs in the message handler: another turn of the event loop would cost a tenth of a short query. A port never yields
 * while messages arrive; so those that come during others' turn wait here.
 */
async function work(): Promise<void> {
  if (clock.monotonic() - held.until >= PAUSE_MS) held.since = clock.monotonic();
  for (let request = waiting[0]; request; request = waiting[0]) {
    if (clock.monotonic() - held.since >= TURN_MS) {
      await new Promise<void>((resolve) => setImmediate(resolve));
      held.since = clock.monotonic();
    }
    const answered = answer(request);
    if (!SLOW.has(request.method)) await answered;
    waiting.shift();
  }
  held.until = clock.monotonic();
}

parentPort?.on("message", (request: Request) => {
  if (waiting.push(request) === 1) void work();
});

const maintenance = setInterval(() => {
  // Partitions keep the error, report it in the status and at the next append, and retry.
  tsdb.maintain().catch(() => undefined);
}, settings.maintain_ms);

/** Limits are validated by name, so that a typo is noticed. */
for (const name of Object.keys(settings.limits)) {
  if (!(name in TSDB_LIMITS)) throw new Error(`there is no metrics limit named ${name}`);
}
