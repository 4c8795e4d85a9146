import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { App } from "#apps/types.ts";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import type { EgressPolicy } from "#core/egress-policy.ts";
import { ApiError, fail } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { Notifier } from "#core/notifier.ts";
import { type Builder, BuildFailed } from "./builder.ts";
import { type ContextFiles, missingFiles } from "./context-files.ts";
import { checkContext } from "./context-list.ts";
import { baseImages, checkPlatform, readDockerfile } from "./dockerfile.ts";
import type { BuildLimits } from "./limits.ts";
import { LogWriter } from "./log-writer.ts";
import type { BuildSite } from "./site.ts";
import type { BuildStore } from "./store.ts";
import { type Build, type ContextOwner, ENDED, type NewBuild } from "./types.ts";

export interface BuildParts {
  store: BuildStore;
  builder: Builder;
  files: ContextFiles;
  /** The folder of contexts during builds. */
  dir: string;
  node_id: string;
  /** Wakes the process that runs a build; absent where there is no other one. */
  notifier: Pick<Notifier, "send" | "listen"> | undefined;
  /** The address of a build in the network of its app. */
  address(app: App, id: string): Promise<string>;
  egress(app_id: string): Promise<EgressPolicy>;
  clock: Clock;
  log: Log;
  limits: BuildLimits;
}

/** A build that waits or runs in this process. Its secrets are only in memory. */
interface Job {
  build: Build;
  app: App;
  wanted: NewBuild;
  stop: AbortController;
}

/** Why a build was stopped. */
class Stopped extends Error {
  readonly state: "failed" | "cancelled";
  constructor(state: "failed" | "cancelled", message: string) {
    super(message);
    this.state = state;
  }
}

const RESTARTED = "the platform was restarted while the image was being built; start the build again";
const LOST = "the host that built the image was lost; start the build again";
const CANCELLED = "cancelled";
/** Poll interval of a cancel that waits for the build to end. */
const POLL_MS = 200;
const FILES_HINT = "build it elsewhere and push it: hangar registry login, then docker push; or hangar images import";

const QUEUE_HINT = "wait, or cancel one: hangar builds cancel";
const ENTRY_BYTES = 200;

/** Approximate memory of a waiting build. */
function memoryBytes({ files, args, secrets }: NewBuild): number {
  const variables = [...Object.values(args), ...Object.values(secrets)];
  const entries = files.reduce((sum, { path, link = "" }) => sum + path.length + link.length + ENTRY_BYTES, 0);
  return entries + variables.reduce((sum, value) => sum + value.length, 0);
}

/** Image builds: accepted, queued, run one at a time per organization, and listed. */
export class BuildService implements BuildSite {
  readonly #parts: BuildParts;
  readonly #closing = new AbortController();
  #unlisten = (): void => {};
  /** Validated, but not stored yet. */
  readonly #coming = new Set<Job>();
  #waiting: Job[] = [];
  readonly #running = new Map<string, { job: Job; done: Promise<void> }>();

  constructor(parts: BuildParts) {
    this.#parts = parts;
  }

  /** Cleans up after an earlier process, and marks its builds as failed. */
  async start(): Promise<void> {
    const { builder, dir, node_id, notifier } = this.#parts;
    rmSync(dir, { recursive: true, force: true });
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    await builder.clear();
    await this.#failAll(node_id, RESTARTED);
    void this.#keepLooking();
    if (!notifier) return;
    this.#unlisten = notifier.listen("builds", (message) => {
      if (message === node_id) void this.#poll();
    });
  }

  /** Fails the builds of a process whose host is lost. If it still runs, it stops them when it notices. */
  async hostLost({ node_id }: { node_id: string }): Promise<void> {
    await this.#failAll(node_id, LOST);
  }

  /** Stops running builds, and waits until they have ended. */
  async close(): Promise<void> {
    this.#closing.abort();
    this.#unlisten();
    const stopped = new Stopped("failed", "the platform was stopped while the image was being built");
    for (const job of this.#waiting.splice(0)) await this.#end(job, { state: "failed", error: stopped.message });
    for (const { job } of this.#running.values()) job.stop.abort(stopped);
    await Promise.allSettled([...this.#running.values()].map(({ done }) => done));
  }

  /** Removes layer caches of apps that do not exist. */
  async sweepCaches(exists: (app_id: string) => Promise<boolean>): Promise<void> {
    await this.#parts.builder.sweep(exists);
  }

  /** Cancels the unfinished builds of an app that is about to be deleted. */
  async cancelAll(app_id: string): Promise<void> {
    for (const { id, state } of await this.list(app_id, { limit: this.#parts.limits.builds_per_app }))
      if (!ENDED.includes(state)) await this.cancel(app_id, id);
  }

  async missing(owner: ContextOwner, digests: readonly string[]): Promise<string[]> {
    this.#refuseUnable();
    return (await this.#parts.files.measure(owner, digests)).missing;
  }

  async receive(owner: ContextOwner, upload: AsyncIterable<Uint8Array>): Promise<{ files: number; bytes: number }> {
    this.#refuseUnable();
    return await this.#parts.files.receive(owner, upload);
  }

  async create(app: App, created_by: string, wanted: NewBuild, id: string): Promise<Build> {
    const { store, files, limits, clock, node_id } = this.#parts;
    this.#refuseUnable();
    checkContext(wanted.files, wanted.dockerfile, limits);
    checkPlatform(wanted.platform ?? "");
    const digests = wanted.files.flatMap(({ sha256 }) => sha256 ?? []);
    const { missing, bytes } = await files.measure({ org_id: app.org_id, app_id: app.id }, digests);
    if (missing.length > 0) missingFiles(missing.length);
    if (bytes > limits.context_bytes)
      fail("limit_reached", `the context has ${bytes} bytes; at most ${limits.context_bytes} (limit context_bytes)`, {
        hint: "leave out what the build does not need with .dockerignore",
      });
    const build: Build = {
      id,
      app_id: app.id,
      org_id: app.org_id,
      state: "queued",
      node_id,
      cancel_requested: false,
      dockerfile: wanted.dockerfile,
      target: wanted.target ?? null,
      no_cache: wanted.no_cache,
      files: digests.length,
      bytes,
      image: `builds/${app.name}:latest`,
      digest: null,
      step: null,
      error: null,
      created_by,
      created_at: clock.now(),
      started_at: null,
      ended_at: null,
    };
    const known = await store.find(app.id, build.id);
    if (known) return known;
    const job: Job = { build, app, wanted, stop: new AbortController() };
    this.#refuseLong(job);
    // Before it is stored, so that concurrent requests share the remaining quota.
    this.#coming.add(job);
    try {
      const refused = await store.insert(build, { keep: limits.builds_per_app, open: limits.builds_per_org });
      if (refused === "app is gone") fail("not_found", "the app was deleted in the meantime");
      if (refused)
        fail(
          "limit_reached",
          `this organization has ${limits.builds_per_org} builds that wait or run (limit builds_per_org)`,
          { hint: QUEUE_HINT },
        );
    } finally {
      this.#coming.delete(job);
    }
    this.#waiting.push(job);
    this.#next();
    return build;
  }

  async get(app_id: string, id: string): Promise<Build> {
    return (await this.#parts.store.find(app_id, id)) ?? fail("not_found", `there is no build ${id}`);
  }

  list: BuildStore["list"] = (app_id, page) => this.#parts.store.list(app_id, page);

  /**
   * A build that has ended is unchanged. A waiting one is cancelled at once, by any process; a running one is stopped
   * by the process that runs it, and returned in its current state when that takes long.
   */
  async cancel(app_id: string, id: string): Promise<Build> {
    const { store, clock, limits, notifier } = this.#parts;
    const { node_id } = await this.get(app_id, id);
    const cancelled = { state: "cancelled", error: CANCELLED, ended_at: clock.now() } as const;
    if (!(await store.change(id, ["queued"], cancelled))) await store.requestCancel(id);
    notifier?.send("builds", node_id);
    await this.#poll();
    const until = clock.monotonic() + limits.cancel_wait_ms;
    for (;;) {
      const build = await this.get(app_id, id);
      if (ENDED.includes(build.state) || clock.monotonic() >= until) return build;
      await clock.sleep(POLL_MS);
    }
  }

  async #keepLooking(): Promise<void> {
    const { clock, limits } = this.#parts;
    const { signal } = this.#closing;
    while (!signal.aborted) {
      await clock.sleep(limits.cancel_look_ms, signal).catch(() => {});
      if (!signal.aborted) await this.#poll();
    }
  }

  /** Stops builds of this process that were cancelled, or marked as lost, through another process. */
  async #poll(): Promise<void> {
    const { store, node_id, log } = this.#parts;
    // Copied before the database is read, so that a build added meanwhile is not taken for deleted.
    const jobs = [...this.#waiting, ...Array.from(this.#running.values(), ({ job }) => job)];
    if (jobs.length === 0) return;
    try {
      const open = new Map((await store.unfinished(node_id)).map((build) => [build.id, build]));
      for (const { build, stop } of jobs)
        if (open.get(build.id)?.cancel_requested ?? true) stop.abort(new Stopped("cancelled", CANCELLED));
      this.#waiting = this.#waiting.filter(({ stop }) => !stop.signal.aborted);
    } catch (error) {
      log.warn({ error }, "cancelled builds could not be looked for");
    }
  }

  async #failAll(node_id: string, error: string): Promise<void> {
    const { store, clock } = this.#parts;
    for (const { id } of await store.unfinished(node_id))
      await store.change(id, ["queued", "running"], { state: "failed", error, ended_at: clock.now() });
  }

  /** Limits the memory of waiting builds. */
  #refuseLong({ build: { org_id }, wanted }: Job): void {
    const { org_queue_bytes } = this.#parts.limits;
    const open = [...this.#coming, ...this.#waiting, ...[...this.#running.values()].map(({ job }) => job)];
    const own = open.filter(({ build }) => build.org_id === org_id);
    const bytes = own.reduce((sum, job) => sum + memoryBytes(job.wanted), memoryBytes(wanted));
    if (bytes > org_queue_bytes)
      fail("limit_reached", `the builds of this organization have lists of ${bytes} bytes (limit org_queue_bytes)`, {
        hint: QUEUE_HINT,
      });
  }

  #refuseUnable(): void {
    const problem = this.#parts.builder.problem();
    if (problem) fail("build_refused", `this platform cannot build images: ${problem}`, { hint: FILES_HINT });
  }

  /** Starts what may start now. */
  #next(): void {
    const { limits, log } = this.#parts;
    while (!this.#closing.signal.aborted && this.#running.size < limits.builds_parallel) {
      const at = this.#waiting.findIndex(({ build }) => !this.#running.has(build.org_id));
      const [job] = at < 0 ? [] : this.#waiting.splice(at, 1);
      if (!job) return;
      const { org_id } = job.build;
      const done = this.#run(job)
        .catch((error: unknown) => log.error({ error, build: job.build.id }, "a build's end could not be recorded"))
        .finally(() => {
          this.#running.delete(org_id);
          this.#next();
        });
      this.#running.set(org_id, { job, done });
    }
  }

  async #run(job: Job): Promise<void> {
    const { store, files, clock, log, limits, dir } = this.#parts;
    const { build, wanted, stop } = job;
    const output = new LogWriter(build.id, { store, clock, limits, secrets: Object.values(wanted.secrets) });
    const over = new AbortController();
    const late = `it took longer than ${limits.build_ms / 1000} s (limit build_ms)`;
    const timer = clock.sleep(limits.build_ms, over.signal);
    timer.then(
      () => stop.abort(new Stopped("failed", late)),
      () => {},
    );
    try {
      if (!(await store.change(build.id, ["queued"], { state: "running", started_at: clock.now() }))) return;
      const digest = await this.#build(job, join(dir, build.id), output);
      await output.end();
      await this.#end(job, { state: "complete", digest });
    } catch (thrown) {
      const why = stop.signal.aborted ? (stop.signal.reason as unknown) : thrown;
      const state = why instanceof Stopped ? why.state : "failed";
      const error = output.mask(this.#reason(job, why));
      output.write(`${error}\n`);
      await output.end();
      await this.#end(job, { state, error });
    } finally {
      over.abort();
      rmSync(join(dir, build.id), { recursive: true, force: true });
      await files
        .expire()
        .catch((error: unknown) => log.warn({ error }, "old files of build contexts were not removed"));
    }
  }

  async #build({ build, app, wanted, stop }: Job, dir: string, output: LogWriter): Promise<string> {
    const { builder, files, egress, address, limits } = this.#parts;
    const context = join(dir, "context");
    await files.write(build, wanted.files, context, stop.signal);
    // Refuses unsupported platforms before anything runs.
    baseImages(readDockerfile(join(context, wanted.dockerfile), limits), wanted, limits);
    const { dockerfile, target, args, secrets, no_cache } = wanted;
    const request = {
      id: build.id,
      org_id: build.org_id,
      app_id: app.id,
      app_name: app.name,
      private_ip: await address(app, build.id),
      egress: await egress(app.id),
      context,
      image: build.image,
      dockerfile,
      target,
      args,
      secrets,
      no_cache,
    };
    const { digest } = await builder.build(request, (text) => output.write(text), stop.signal);
    return digest;
  }

  /** The error shown to the user; internal errors are only in the log. */
  #reason({ build }: Job, why: unknown): string {
    if (why instanceof Stopped || why instanceof BuildFailed || why instanceof ApiError) return why.message;
    this.#parts.log.error({ error: why, build: build.id }, "a build failed");
    return `internal error; see build ${build.id} in the platform's log (${messageOf(why).slice(0, 200)})`;
  }

  async #end({ build }: Job, how: Pick<Build, "state"> & Partial<Build>): Promise<void> {
    const { store, clock } = this.#parts;
    await store.change(build.id, ["queued", "running"], { ...how, ended_at: clock.now() });
  }
}
