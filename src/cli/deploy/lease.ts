/**
 * What a deploy holds while it runs: its release, and the machines it changes. All of it is renewed as long as this process
 * lives, and is free a minute after it is killed. Ctrl C and SIGTERM make the deploy roll back; a second one ends it at once.
 */
import { constants } from "node:os";
import { ClientError } from "#client/client.ts";
import { messageOf } from "#core/assert.ts";
import { LIMITS } from "#core/limits.ts";
import type { Context } from "../verb.ts";

export const LEASE_S = 60;
/** Shorter by more than a renewal: when a release is given up, the machines of its deploy are free. */
export const MACHINE_LEASE_S = 40;
const RENEW_MS = 15_000;
const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

/** The person who deploys, or the system, has ended the deploy. */
export class Interrupted extends Error {
  override readonly name = "Interrupted";
  /** As a shell shows it. */
  readonly exit: number;

  constructor(signal: (typeof SIGNALS)[number]) {
    super(`it was interrupted (${signal})`);
    this.exit = 128 + constants.signals[signal];
  }
}

/** The platform has given the release up, so another deploy may change the same machines: nothing more may be changed. */
export class ReleaseLost extends Error {
  override readonly name = "ReleaseLost";
}

export class DeployLease {
  readonly #context: Context;
  readonly #app_name: string;
  readonly #stop = new AbortController();
  readonly #machines = new Map<string, string>();
  #version: number | undefined;
  /** What is to be reported; the newest alone is. */
  #progress: string | undefined;
  #reporting = false;
  readonly #onSignal = (name: NodeJS.Signals): void => this.#interrupt(name as (typeof SIGNALS)[number]);
  #timer: NodeJS.Timeout | undefined;

  constructor(context: Context, app_name: string) {
    this.#context = context;
    this.#app_name = app_name;
  }

  /** Aborted with the reason when the deploy must not go on. */
  get signal(): AbortSignal {
    return this.#stop.signal;
  }

  begin(version: number): void {
    this.#version = version;
    for (const name of SIGNALS) process.on(name, this.#onSignal);
    this.#timer = setInterval(() => void this.#renew(version), RENEW_MS);
    this.#timer.unref();
  }

  end(): void {
    for (const name of SIGNALS) process.off(name, this.#onSignal);
    clearInterval(this.#timer);
  }

  /** A machine whose lease is renewed until it is released. */
  hold(machine_id: string, nonce: string): void {
    this.#machines.set(machine_id, nonce);
  }

  release(machine_id: string): void {
    this.#machines.delete(machine_id);
  }

  /** Says how far the deploy is, for those who watch it elsewhere. It waits for nothing, and may be lost. */
  report(progress: string): void {
    this.#progress = progress.slice(0, LIMITS.description_chars);
    if (!this.#reporting && this.#version !== undefined) void this.#report(this.#version);
  }

  async #report(version: number): Promise<void> {
    this.#reporting = true;
    while (this.#progress !== undefined) {
      const progress = this.#progress;
      this.#progress = undefined;
      await this.#context.client
        .call("POST /v1/apps/:app_name/releases/:version", {
          params: { app_name: this.#app_name, version: String(version) },
          body: { status: "running", progress },
        })
        .catch(() => {});
    }
    this.#reporting = false;
  }

  #interrupt(name: (typeof SIGNALS)[number]): void {
    // From here on a signal does what it always does.
    for (const other of SIGNALS) process.off(other, this.#onSignal);
    this.#context.say(`${name}: rolling back; once more ends this at once and leaves the machines as they are`);
    this.#stop.abort(new Interrupted(name));
  }

  async #renew(version: number): Promise<void> {
    const { client } = this.#context;
    const app_name = this.#app_name;
    const machines = [...this.#machines].map(([machine_id, nonce]) =>
      client.call("POST /v1/apps/:app_name/machines/:machine_id/lease", {
        params: { app_name, machine_id },
        query: {},
        headers: { "svc-machine-lease-nonce": nonce },
        body: { ttl: MACHINE_LEASE_S },
      }),
    );
    const release = client.call("POST /v1/apps/:app_name/releases/:version", {
      params: { app_name, version: String(version) },
      body: { status: "running" },
    });
    // A lease that is lost is noticed by the next change of its machine.
    const [renewed] = await Promise.allSettled([release, ...machines]);
    if (renewed.status === "fulfilled") return;
    const reason: unknown = renewed.reason;
    // A platform that does not answer may do so again in time.
    if (reason instanceof ClientError && reason.http >= 400 && reason.http < 500 && reason.http !== 429)
      this.#stop.abort(new ReleaseLost(`release ${version} is no longer this deploy's: ${messageOf(reason)}`));
  }
}
