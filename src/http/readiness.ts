import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import { VERSION } from "#core/version.ts";
import { Type } from "./schema.ts";

/** A part of the platform that has to work before requests can be served. */
export interface ReadinessCheck {
  part: "database" | "executor" | "proxy" | "lease";
  /** Why it does not work, or undefined. It is public, so it contains no address and no secret. */
  problem(): Promise<string | undefined>;
}

export interface NotReady {
  part: ReadinessCheck["part"];
  reason: string;
}

export const ReadyAnswer = Type.Object({
  ok: Type.Boolean(),
  version: Type.String(),
  checks: Type.Record(Type.String(), Type.String(), { description: "`ok` for each part that was checked." }),
});

/** Checks all parts at once. Concurrent callers share one check, and its result for a moment. */
export class Readiness {
  readonly #checks: readonly ReadinessCheck[];
  readonly #clock: Clock;
  #looked: Promise<NotReady[]> | undefined;
  #fresh_until = Number.NEGATIVE_INFINITY;

  constructor(checks: readonly ReadinessCheck[], clock: Clock) {
    this.#checks = checks;
    this.#clock = clock;
  }

  get parts(): string[] {
    return this.#checks.map(({ part }) => part);
  }

  /** What is not ready, and why; empty when everything is. */
  async problems(): Promise<NotReady[]> {
    if (!this.#looked || this.#clock.monotonic() > this.#fresh_until) {
      this.#fresh_until = Number.POSITIVE_INFINITY;
      this.#looked = Promise.all(this.#checks.map((check) => this.#look(check))).then((found) => {
        this.#fresh_until = this.#clock.monotonic() + LIMITS.readiness_kept_ms;
        return found.filter((one) => one !== undefined);
      });
    }
    return await this.#looked;
  }

  async answer(): Promise<{ ok: boolean; version: string; checks: Record<string, string> }> {
    const problems = await this.problems();
    if (problems.length > 0) notReady(problems);
    return { ok: true, version: VERSION, checks: Object.fromEntries(this.#checks.map(({ part }) => [part, "ok"])) };
  }

  async #look({ part, problem }: ReadinessCheck): Promise<NotReady | undefined> {
    const late = new AbortController();
    const reason = await Promise.race([
      problem().catch(() => "it failed; the log says how"),
      this.#clock.sleep(LIMITS.readiness_check_ms, late.signal).then(
        () => `it did not answer within ${LIMITS.readiness_check_ms / 1000} s`,
        () => undefined,
      ),
    ]);
    late.abort();
    return reason === undefined ? undefined : { part, reason };
  }
}

function notReady(reasons: readonly NotReady[]): never {
  const said = reasons.map(({ part, reason }) => `${part}: ${reason}`).join("; ");
  fail("not_ready", `the platform is not ready: ${said}`, { retry_after_s: 1, facts: { ok: false, reasons } });
}
