/**
 * Deploys that the platform runs for someone without a terminal, such as a person at the dashboard. The work is that of the
 * `hangar` command; here is who may start one, how many at a time, and what becomes of one when the platform ends.
 */
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import { CATALOGUE, type ErrorCode } from "#core/error-catalogue.ts";
import { fail } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import type { CommandOutput, CommandResult, DeployCommand } from "./command.ts";
import { DEPLOYMENT_LIMITS } from "./limits.ts";
import { DeploymentOutput } from "./output.ts";
import { commandOf, type DeploymentInput } from "./types.ts";

export interface DeployedApp {
  id: string;
  name: string;
}

/** A release that was begun when the platform ended. */
export interface InterruptedDeployment {
  app_id: string;
  /** The newest release before it. */
  after: number;
}

interface Parts {
  command: DeployCommand;
  /** One file per running deployment, so that the next start knows about it. */
  dir: string;
  log: Log;
  newestVersion(app_id: string): Promise<number>;
  interrupted(found: InterruptedDeployment): Promise<void>;
}

interface Wanted {
  app: DeployedApp;
  token: string;
  input: DeploymentInput;
}

export interface Deployment {
  output: DeploymentOutput;
  ended: Promise<CommandResult>;
}

export class DeploymentService {
  readonly #parts: Parts;
  readonly #closing = new AbortController();
  /** By app: one at a time. */
  readonly #running = new Map<string, Promise<CommandResult>>();
  #planning = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** Marks releases of deployments that the end of the process interrupted. */
  async start(): Promise<void> {
    mkdirSync(this.#parts.dir, { recursive: true, mode: 0o700 });
    for (const name of readdirSync(this.#parts.dir)) {
      const path = join(this.#parts.dir, name);
      await this.#parts.interrupted(JSON.parse(readFileSync(path, "utf8")) as InterruptedDeployment);
      rmSync(path, { force: true });
    }
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#running.values());
  }

  /** What a deployment would do, a line for each change; changes nothing. */
  async plan({ app, token, input }: Wanted): Promise<string[]> {
    this.#refuseBusy();
    this.#planning++;
    const late = AbortSignal.timeout(DEPLOYMENT_LIMITS.deployment_plan_ms);
    try {
      const signal = AbortSignal.any([late, this.#closing.signal]);
      const words = [...commandOf(app.name, input), "--dry-run"];
      const { ok, result } = await this.#parts.command.run({ words, token, onLine: () => {}, signal });
      if (!ok && late.aborted) fail("overloaded", "the dry run took too long (limit deployment_plan_ms)");
      if (!ok) refuse(result);
      return result.lines ?? [];
    } finally {
      this.#planning--;
    }
  }

  /** Starts a deployment, which continues when its client disconnects. */
  async begin(wanted: Wanted): Promise<Deployment> {
    const { app } = wanted;
    this.#refuseBusy();
    if (this.#running.has(app.id))
      fail("conflict", `another deployment of ${app.name} is running`, { hint: "wait until it has ended" });
    const output = new DeploymentOutput();
    const ended = this.#run(wanted, output);
    this.#running.set(app.id, ended);
    ended
      .catch(() => {})
      .finally(() => {
        this.#running.delete(app.id);
        output.end();
      });
    return { output, ended };
  }

  async #run({ app, token, input }: Wanted, output: DeploymentOutput): Promise<CommandResult> {
    const { command, dir, log, newestVersion, interrupted } = this.#parts;
    const begun: InterruptedDeployment = { app_id: app.id, after: await newestVersion(app.id) };
    const mark = join(dir, `${app.id}.json`);
    writeFileSync(mark, JSON.stringify(begun));
    const late = AbortSignal.timeout(DEPLOYMENT_LIMITS.deployment_ms);
    const signal = AbortSignal.any([late, this.#closing.signal]);
    const onLine = (line: string): void => output.add(line);
    try {
      const done = await command.run({ words: commandOf(app.name, input), token, onLine, signal });
      if (late.aborted) await interrupted(begun);
      return done;
    } catch (error) {
      log.error({ error, app: app.name }, "a deployment could not be run");
      return { ok: false, result: { error: messageOf(error) } };
    } finally {
      // A closing platform leaves the mark for its next start, since the store is closing too.
      if (!this.#closing.signal.aborted) rmSync(mark, { force: true });
    }
  }

  #refuseBusy(): void {
    const running = this.#running.size + this.#planning;
    if (running >= DEPLOYMENT_LIMITS.deployments_parallel)
      fail("overloaded", `${running} deployments run already (limit deployments_parallel)`, { retry_after_s: 10 });
  }
}

/** The command's error as this platform's own: most of them came from it. */
export function refuse({ error, status = "", hint, details }: CommandOutput): never {
  const known = status in CATALOGUE ? (status as ErrorCode) : "deploy_failed";
  fail(known, error ?? "the deployment failed", {
    ...(hint === undefined ? {} : { hint }),
    ...(details === undefined ? {} : { details }),
  });
}
