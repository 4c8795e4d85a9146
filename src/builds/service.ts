import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { App } from "#apps/types.ts";
import { messageOf } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import type { EgressPolicy } from "#core/egress-policy.ts";
import { ApiError, fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import type { Log } from "#core/log.ts";
import { type Builder, BuildFailed } from "./builder.ts";
import { type ContextFiles, missingFiles } from "./context-files.ts";
import { checkContext } from "./context-list.ts";
import { baseImages, checkPlatform } from "./dockerfile.ts";
import type { BuildLimits } from "./limits.ts";
import { LogWriter } from "./log-writer.ts";
import type { BuildStore } from "./store.ts";
import { type Build, type BuildOptions, type ContextEntry, ENDED } from "./types.ts";

export interface BuildParts {
  store: BuildStore;
  builder: Builder;
  files: ContextFiles;
  /** Where contexts are while they are built. */
  dir: string;
  node_id: string;
  /** The address of a build in the network of its app. */
  address(app: App, id: string): Promise<string>;
  egress(app_id: string): Promise<EgressPolicy>;
  clock: Clock;
  log: Log;
  limits: BuildLimits;
}

export interface NewBuild extends BuildOptions {
  files: readonly ContextEntry[];
  platform?: string | undefined;
}

/** A build that waits or runs here. Its secrets are nowhere else. */
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
const FILES_HINT = "build it elsewhere and push it: hangar registry login, then docker push; or hangar images import";

/** Builds of images: taken in, queued, run one at a time per organization, and found again. */
export class BuildService {
  readonly #parts: BuildParts;
  readonly #waiting: Job[] = [];
  readonly #running = new Map<string, { job: Job; done: Promise<void> }>();
  #closed = false;

  constructor(parts: BuildParts) {
    this.#parts = parts;
  }

  /** What an earlier process left behind goes, and its builds have failed. */
  async start(): Promise<void> {
    const { store, builder, dir, node_id, clock } = this.#parts;
    rmSync(dir, { recursive: true, force: true });
    mkdirSync(dir, { recursive: true, mode: 0o700 });
    await builder.clear();
    for (const { id } of await store.unfinished(node_id))
      await store.change(id, ["queued", "running"], { state: "failed", error: RESTARTED, ended_at: clock.now() });
  }

  /** Ends what runs, and waits until nothing of it is left. */
  async close(): Promise<void> {
    this.#closed = true;
    const stopped = new Stopped("failed", "the platform was stopped while the image was being built");
    for (const job of this.#waiting.splice(0)) await this.#end(job, { state: "failed", error: stopped.message });
    for (const { job } of this.#running.values()) job.stop.abort(stopped);
    await Promise.allSettled([...this.#running.values()].map(({ done }) => done));
  }

  missing(org_id: string, digests: readonly string[]): string[] {
    this.#refuseUnable();
    return this.#parts.files.missing(org_id, digests);
  }

  receive(org_id: string, upload: AsyncIterable<Uint8Array>): Promise<{ files: number; bytes: number }> {
    this.#refuseUnable();
    return this.#parts.files.receive(org_id, upload);
  }

  async create(app: App, created_by: string, wanted: NewBuild, ids: Ids): Promise<Build> {
    const { store, files, limits, clock, node_id } = this.#parts;
    this.#refuseUnable();
    checkContext(wanted.files, wanted.dockerfile);
    checkPlatform(wanted.platform ?? "");
    const digests = wanted.files.flatMap(({ sha256 }) => sha256 ?? []);
    const missing = files.missing(app.org_id, digests);
    if (missing.length > 0) missingFiles(missing.length);
    if ((await store.waiting(app.org_id)) >= limits.builds_per_org)
      fail(
        "limit_reached",
        `this organization has ${limits.builds_per_org} builds that wait or run (limit builds_per_org)`,
        {
          hint: "wait, or cancel one: hangar builds cancel",
        },
      );
    const build: Build = {
      id: ids.hex(14),
      app_id: app.id,
      org_id: app.org_id,
      state: "queued",
      node_id,
      dockerfile: wanted.dockerfile,
      target: wanted.target ?? null,
      no_cache: wanted.no_cache,
      files: digests.length,
      bytes: 0,
      image: `builds/${app.name}:latest`,
      digest: null,
      error: null,
      created_by,
      created_at: clock.now(),
      started_at: null,
      ended_at: null,
    };
    const known = await store.find(app.id, build.id);
    if (known) return known;
    if (!(await store.insert(build, limits.builds_per_app))) fail("not_found", "the app was deleted in the meantime");
    this.#waiting.push({ build, app, wanted, stop: new AbortController() });
    this.#next();
    return build;
  }

  async get(app_id: string, id: string): Promise<Build> {
    return (await this.#parts.store.find(app_id, id)) ?? fail("not_found", `there is no build ${id}`);
  }

  list: BuildStore["list"] = (app_id, page) => this.#parts.store.list(app_id, page);

  /** A build that has ended stays as it is. */
  async cancel(app_id: string, id: string): Promise<Build> {
    const build = await this.get(app_id, id);
    if (ENDED.includes(build.state)) return build;
    const waiting = this.#waiting.findIndex((job) => job.build.id === id);
    const running = [...this.#running.values()].find(({ job }) => job.build.id === id);
    const reason = "cancelled";
    if (waiting >= 0) {
      for (const job of this.#waiting.splice(waiting, 1)) await this.#end(job, { state: "cancelled", error: reason });
    } else if (running) {
      running.job.stop.abort(new Stopped("cancelled", reason));
      await running.done;
    } else {
      fail("conflict", `build ${id} runs in another process of the platform`, {
        hint: "cancel it there, or wait until it ends",
      });
    }
    return await this.get(app_id, id);
  }

  #refuseUnable(): void {
    const problem = this.#parts.builder.problem();
    if (problem) fail("build_refused", `this platform cannot build images: ${problem}`, { hint: FILES_HINT });
  }

  /** Starts what may start now. */
  #next(): void {
    const { limits, log } = this.#parts;
    while (!this.#closed && this.#running.size < limits.builds_parallel) {
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
    const { builder, files, egress, address } = this.#parts;
    const context = join(dir, "context");
    await files.write(build.org_id, wanted.files, context);
    // Told before anything runs: a platform that cannot be built for.
    baseImages(readFileSync(join(context, wanted.dockerfile), "utf8"), wanted.args);
    const { dockerfile, target, args, secrets, no_cache } = wanted;
    const request = {
      id: build.id,
      org_id: build.org_id,
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

  /** What the person who started it is told; what is our own fault is in the log alone. */
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
