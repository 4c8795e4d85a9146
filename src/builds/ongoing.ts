/**
 * What is being built and deployed in an organization, for those who watch. It is read from the database as long as somebody
 * does, once for all of them: so a build or deploy that another process runs, or that ended with its process, is seen too.
 */
import { Running, runningResponse } from "#apps/release-routes.ts";
import type { ReleaseStore } from "#apps/release-store.ts";
import type { Clock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import { Type } from "#http/schema.ts";
import { BUILD_LIMITS } from "./limits.ts";
import { OrgBuildResponse, orgBuildResponse } from "./schema.ts";
import type { BuildStore } from "./store.ts";

export const OngoingMessage = Type.Object({
  builds: Type.Array(OrgBuildResponse, { description: "Queued and running builds." }),
  failed_builds: Type.Array(OrgBuildResponse, { description: "Each app's newest build, where that failed." }),
  deployments: Type.Array(Running, { description: "Releases that are being deployed." }),
});

interface Parts {
  builds: Pick<BuildStore, "listOfOrg" | "failedLast">;
  releases: Pick<ReleaseStore, "running">;
  clock: Clock;
  log: Log;
}

/** One organization that is watched. */
class Watch {
  readonly #parts: Parts;
  readonly #org_id: string;
  readonly #over = new AbortController();
  #latest: string | undefined;
  #changed = Promise.withResolvers<void>();
  watchers = 0;

  constructor(parts: Parts, org_id: string) {
    this.#parts = parts;
    this.#org_id = org_id;
  }

  get latest(): string | undefined {
    return this.#latest;
  }

  get changed(): Promise<void> {
    return this.#changed.promise;
  }

  async run(): Promise<void> {
    const { clock, log } = this.#parts;
    const { signal } = this.#over;
    while (!signal.aborted) {
      try {
        const read = JSON.stringify(await this.#read());
        if (read !== this.#latest) {
          this.#latest = read;
          this.#changed.resolve();
          this.#changed = Promise.withResolvers();
        }
      } catch (error) {
        log.warn({ error }, "what is being built and deployed could not be read; retrying");
      }
      await clock.sleep(BUILD_LIMITS.ongoing_look_ms, signal).catch(() => {});
    }
  }

  end(): void {
    this.#over.abort();
  }

  async #read() {
    const { builds, releases, clock } = this.#parts;
    const limit = BUILD_LIMITS.ongoing_shown;
    const [open, failed, running] = await Promise.all([
      builds.listOfOrg(this.#org_id, ["queued", "running"], { limit }),
      builds.failedLast(this.#org_id, clock.now() - BUILD_LIMITS.failed_shown_ms, limit),
      releases.running(this.#org_id, { limit }),
    ]);
    return {
      builds: open.map(orgBuildResponse),
      failed_builds: failed.map(orgBuildResponse),
      deployments: running.map(runningResponse),
    };
  }
}

export class Ongoing {
  readonly #parts: Parts;
  readonly #watches = new Map<string, Watch>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** What there is now, and again after each change; slow readers get the newest alone. */
  async *follow(org_id: string, signal: AbortSignal): AsyncGenerator<unknown> {
    const watch = this.#join(org_id);
    const left = new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    try {
      for (let seen: string | undefined; !signal.aborted; ) {
        const { latest, changed } = watch;
        if (latest !== undefined && latest !== seen) {
          seen = latest;
          yield JSON.parse(latest) as unknown;
        } else await Promise.race([changed, left]);
      }
    } finally {
      this.#leave(org_id, watch);
    }
  }

  #join(org_id: string): Watch {
    const known = this.#watches.get(org_id);
    const watch = known ?? new Watch(this.#parts, org_id);
    watch.watchers++;
    if (!known) {
      this.#watches.set(org_id, watch);
      void watch.run();
    }
    return watch;
  }

  #leave(org_id: string, watch: Watch): void {
    watch.watchers--;
    if (watch.watchers > 0) return;
    this.#watches.delete(org_id);
    watch.end();
  }
}
