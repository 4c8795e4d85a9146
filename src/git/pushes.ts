/**
 * Pushes: Git receives and checks what is sent, then the platform deploys it, and only when that worked Git keeps it. So
 * what a branch stands for is what was deployed, and a push that failed can be pushed again.
 */
import type { ChildProcess } from "node:child_process";
import { once } from "node:events";
import { appendFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import { join } from "node:path";
import type { Duplex } from "node:stream";
import { messageOf } from "#core/assert.ts";
import { ApiError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { PREVIEW_BRANCH } from "./branch-names.ts";
import type { Confinement } from "./confinement.ts";
import { type Deployment, deployCommit } from "./deployment.ts";
import { collected, GitFailed, REPOSITORY, runGit, startGit } from "./git-command.ts";
import { type Announced, HookChannel, PushRefused } from "./hook.ts";
import type { GitLimits } from "./limits.ts";
import type { Previews } from "./previews.ts";
import { COMMITS, openFolder, PREVIEWS, type Repositories } from "./repositories.ts";
import type { Turns } from "./turns.ts";
import { branchOf, type GitApp, isZero, type RefUpdate } from "./types.ts";

export interface Push {
  app: GitApp;
  deploy_branch: string;
  /** Other branches are deployed as preview apps. */
  has_previews: boolean;
  /** The token that deploys: the pusher's, narrowed to this app. */
  token: string;
  /** Aborted when the pusher's token no longer allows it. */
  allowed: AbortSignal;
  body: AsyncIterable<Uint8Array>;
  /** Takes the answer of Git as it comes. */
  output(chunk: Uint8Array): Promise<void>;
  /** Something that Git does not say itself; shown in the push. */
  remark(text: string): Promise<void>;
}

interface Parts {
  repositories: Repositories;
  confinement: Confinement;
  limits: GitLimits;
  log: Log;
  previews: Pick<Previews, "abandoned" | "branchDeleted">;
  turns: Turns;
  url(): string;
}

export class Pushes {
  readonly #parts: Parts;
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<boolean>>();
  #made = 0;

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  get running(): number {
    return this.#running.size;
  }

  /**
   * Resolves when Git has ended; what went wrong is in the output. False when Git was killed before it had answered.
   */
  async receive(push: Push): Promise<boolean> {
    const running = this.#receive(push);
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  /** Ends all pushes; nothing of them is kept. */
  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#running);
  }

  async #receive(push: Push): Promise<boolean> {
    const { repositories, confinement, limits, log } = this.#parts;
    const { app } = push;
    const dir = await repositories.open(app, push.deploy_branch);
    const room = Math.min(limits.push_bytes, await repositories.room(app));
    const work = join(dir, "work", `${process.pid}-${++this.#made}`);
    openFolder(work);
    const stop = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(limits.push_ms), push.allowed]);
    const kill = new AbortController();
    // Git is asked to end first, by its hook: it completes its answer, without which a client hangs.
    const killLater = (): void => void setTimeout(() => kill.abort(), limits.push_end_ms).unref();
    stop.addEventListener("abort", killLater, { once: true });
    try {
      const git = startGit(
        confinement,
        { dir, has_channel: true, signal: kill.signal, args: ["receive-pack", "--stateless-rpc", REPOSITORY] },
        { "receive.maxInputSize": String(room) },
      );
      const ended = once(git, "close");
      ended.catch(() => {});
      const problem = collected(git.stderr);
      const channel = new HookChannel(git.stdio[3] as Duplex, limits);
      const decided = this.#decide(channel, { push, dir, work, ended, signal: stop });
      await Promise.all([sendBody(git, push, { room, ended, limits }), passOn(git, push), decided]);
      await ended.catch(() => {});
      if (git.exitCode !== 0) log.info({ app: app.name, problem: await problem }, "a push was not kept");
      // The push is over: the next one tries again.
      await repositories
        .repackIfNeeded(app)
        .catch((error: unknown) => log.warn({ error, app: app.name }, "a Git repository could not be repacked"));
      return git.exitCode !== null;
    } finally {
      stop.removeEventListener("abort", killLater);
      await rm(work, { recursive: true, force: true });
    }
  }

  /** Responds to the hook. The next deploy waits until Git has stored this push. */
  async #decide(channel: HookChannel, { push, dir, work, ended, signal }: Receiving): Promise<void> {
    const { limits, log } = this.#parts;
    const report = (line: string): void => channel.say(line);
    try {
      const announced = await channel.announced(limits);
      if (!announced) return;
      const actions = announced.updates.map((update) => this.#actionOf(update, push));
      if (actions.filter(Boolean).length > limits.deploys_per_push)
        throw new PushRefused(
          `A push deploys at most ${limits.deploys_per_push} branches (limit deploys_per_push): push them one by one.`,
        );
      const onWait = (): void => report(`Another push to ${push.app.name} is being deployed: waiting for it.`);
      await this.#parts.turns.take(
        push.app.id,
        onWait,
        async () => {
          await this.#refuseMoved(dir, announced.updates, signal);
          for (const update of announced.updates)
            await this.#apply(update, { push, dir, work, objects: announced.objects, say: report, signal });
          channel.end(0);
          await ended;
        },
        signal,
      );
    } catch (thrown) {
      const lines = push.allowed.aborted
        ? ["The token of this push was revoked or has expired: the push was ended."]
        : problemLines(thrown, log);
      for (const line of lines) report(line);
      report(`Nothing of this push is kept. \`hangar releases --app ${push.app.name}\` shows what runs.`);
      channel.end(1);
    }
  }

  /** Whether the update deploys; fails for what cannot be pushed. */
  #actionOf({ ref, after }: RefUpdate, { deploy_branch, has_previews, app }: Push): boolean {
    const { ref_name_chars } = this.#parts.limits;
    if (ref.length > ref_name_chars)
      throw new PushRefused(
        `The name of a branch or tag has at most ${ref_name_chars} characters (limit ref_name_chars).`,
      );
    const branch = branchOf(ref);
    if (branch === undefined && !ref.startsWith("refs/tags/"))
      throw new PushRefused(`${ref} is neither a branch nor a tag (refs/heads/…, refs/tags/…).`);
    if (branch !== deploy_branch) return has_previews && branch !== undefined && !isZero(after);
    if (isZero(after))
      throw new PushRefused(
        `${branch} is the branch that ${app.name} is deployed from: it cannot be deleted. \`hangar git branch NAME --app ${app.name}\` names another one.`,
      );
    return true;
  }

  /** While this push waited, another one may have moved a branch: Git would refuse it after the deploy. */
  async #refuseMoved(dir: string, updates: readonly RefUpdate[], signal: AbortSignal): Promise<void> {
    const { confinement, limits } = this.#parts;
    const args = [`--git-dir=${REPOSITORY}`, "for-each-ref", "--format=%(objectname) %(refname)"];
    const now = new Map<string, string>();
    await runGit(confinement, { dir, limits, signal, args }, (line) => {
      const [id = "", ref = ""] = line.split(" ");
      now.set(ref, id);
    });
    for (const { ref, before } of updates)
      if (!isZero(before) && now.get(ref) !== before)
        throw new PushRefused(`${ref} was changed by another push in the meantime: fetch it, then push again.`);
  }

  async #apply(update: RefUpdate, at: Applying): Promise<void> {
    const { push, say } = at;
    const branch = branchOf(update.ref);
    if (branch === undefined) return;
    if (isZero(update.after)) return await this.#dropPreview(branch, at);
    if (branch === push.deploy_branch) return await this.#deploy(update, branch, at);
    if (!push.has_previews || !PREVIEW_BRANCH.test(branch)) {
      const why = push.has_previews ? "a preview's branch has letters, digits and . _ - + @ / in its name" : "";
      say(`${branch} is stored; ${why || `${push.app.name} is deployed from ${push.deploy_branch}`}.`);
      return;
    }
    appendFileSync(join(at.work, PREVIEWS), `${branch}\n`);
    try {
      await this.#deploy(update, branch, at, [`--preview=${branch}`]);
    } catch (thrown) {
      await this.#parts.previews.abandoned(push.app.id, branch);
      throw thrown;
    }
  }

  async #dropPreview(branch: string, { push, say }: Applying): Promise<void> {
    const name = await this.#parts.previews.branchDeleted(push.app.id, branch);
    if (name !== undefined) say(`Deleting the preview ${name} with all that is its own.`);
  }

  async #deploy(update: RefUpdate, branch: string, at: Applying, options: readonly string[] = []): Promise<void> {
    const { push, work, say, dir, objects, signal } = at;
    const to = options.length > 0 ? `as a preview of ${push.app.name}` : `to ${push.app.name}`;
    say(`Deploying ${branch} (${update.after.slice(0, 12)}) ${to}. Ctrl C ends this output, not the deploy.`);
    // Known to the next start, should there be no end of this.
    appendFileSync(join(work, COMMITS), `${update.after}\n`);
    const wanted: Deployment = {
      app_name: push.app.name,
      branch,
      commit: update.after,
      token: push.token,
      options,
      dir,
      work,
      objects,
      say,
      signal,
    };
    if (!(await deployCommit(this.#parts, wanted)))
      throw new PushRefused(`${branch} was not deployed; the reason is above. Mend it and push again.`);
  }
}

interface Receiving {
  push: Push;
  dir: string;
  work: string;
  /** Git has ended. */
  ended: Promise<unknown>;
  signal: AbortSignal;
}

interface Applying extends Omit<Receiving, "ended"> {
  objects: Announced["objects"];
  say(line: string): void;
}

export function problemLines(thrown: unknown, log: Log): string[] {
  if (thrown instanceof PushRefused) return [thrown.message];
  if (thrown instanceof GitFailed) return [`Git: ${thrown.message}`];
  if (thrown instanceof ApiError) return [thrown.message, ...(thrown.extras.hint ? [thrown.extras.hint] : [])];
  if ((thrown as Error | null)?.name === "AbortError")
    return ["The push was ended: the platform is stopping, or it took too long (limit push_ms). Push again."];
  log.error({ error: thrown }, "a push failed in a way that no one expected");
  return [`internal error: ${messageOf(thrown)}`];
}

/** Sends what comes, up to the room there is. A client that leaves early makes Git end as well. */
async function sendBody(
  git: ChildProcess,
  { body, remark }: Push,
  { room, ended, limits }: { room: number; ended: Promise<unknown>; limits: GitLimits },
): Promise<void> {
  const { stdin } = git;
  stdin?.on("error", () => {});
  let [bytes, reported] = [0, false];
  try {
    for await (const piece of body) {
      bytes += piece.length;
      if (bytes > room && !reported) {
        reported = true;
        await remark(
          `The push has more than ${room} bytes: a push has at most ${limits.push_bytes} (limit push_bytes), a repository ${limits.repository_bytes} (limit repository_bytes).`,
        );
      }
      // The excess is read and discarded, so that the client can read the response, up to a limit.
      if (bytes > room * 2) break;
      if (stdin?.writable && !stdin.write(piece)) await Promise.race([once(stdin, "drain"), ended]).catch(() => {});
    }
  } finally {
    stdin?.end();
  }
}

/** A client that has left does not end the push. */
async function passOn(git: ChildProcess, { output }: Push): Promise<void> {
  for await (const chunk of git.stdout ?? []) await output(chunk as Uint8Array).catch(() => {});
}
