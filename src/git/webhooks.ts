/**
 * Deploys what is pushed elsewhere: an event of GitHub, Gitea or Forgejo is recorded, answered, and worked on later. It only
 * says where to look; the branch is looked up in the repository that the app's owner named.
 */
import { createHash } from "node:crypto";
import { appendFileSync } from "node:fs";
import { rm } from "node:fs/promises";
import type { IncomingHttpHeaders } from "node:http";
import { join } from "node:path";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import type { Log } from "#core/log.ts";
import type { Sealer } from "#core/sealer.ts";
import { Slots } from "#core/slots.ts";
import type { Confinement } from "./confinement.ts";
import { deployCommit } from "./deployment.ts";
import { PushRefused } from "./hook.ts";
import type { GitLimits } from "./limits.ts";
import type { Previews } from "./previews.ts";
import { problemLines } from "./pushes.ts";
import { fetchPack, refsOf, setRef } from "./remote-pack.ts";
import type { RemoteReader, RemoteRepository } from "./remote-repository.ts";
import { COMMITS, openFolder, PREVIEWS, type Repositories } from "./repositories.ts";
import type { Turns } from "./turns.ts";
import type { GitApp } from "./types.ts";
import { deliveryName, eventName, isSigned, payloadOf, readEvent } from "./webhook-events.ts";
import type { Delivery, GitWebhook, GitWebhookStore } from "./webhook-store.ts";

export interface WebhookParts {
  store: GitWebhookStore;
  repositories: Repositories;
  previews: Previews;
  turns: Turns;
  confinement: Confinement;
  remote: RemoteReader;
  /** Refuses an address that the platform does not fetch from. */
  checkAddress(repository: string): string;
  deployBranch(app_id: string): Promise<string>;
  appOf(app_id: string): Promise<GitApp | undefined>;
  /** A token that deploys the app, from the one that the webhook keeps; fails when that is no longer good. */
  deployToken(token: string, app: GitApp): Promise<string>;
  revoke(org_id: string, token_id: string): Promise<unknown>;
  sealer: Sealer;
  node_id: string;
  clock: Clock;
  log: Log;
  limits: GitLimits;
  url(): string;
}

export interface NewWebhook {
  app: GitApp;
  repository: string;
  username?: string | undefined;
  password?: string | undefined;
  created_by: string;
}

type Answer = { result: "pong" | "queued" | "repeated" } | { result: "ignored"; why: string };

const RESULT_CHARS = 2000;
const TAIL_LINES = 20;

export class GitWebhooks {
  readonly #parts: WebhookParts;
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<void>>();
  readonly #slots: Slots;
  #made = 0;

  constructor(parts: WebhookParts) {
    this.#parts = parts;
    this.#slots = new Slots(parts.limits.webhook_deploys_parallel);
  }

  /** Takes up what an earlier process had not ended. */
  async start(): Promise<void> {
    const { store, node_id } = this.#parts;
    for (const delivery of await store.unfinished(node_id)) this.#queue(delivery);
  }

  async close(): Promise<void> {
    this.#closing.abort();
    await Promise.allSettled(this.#running);
  }

  list: GitWebhookStore["list"] = (app_id) => this.#parts.store.list(app_id);

  /** The webhook, with its secret, which is shown only now. `token` is one that may deploy the app. */
  async create(wanted: NewWebhook, token: { text: string; id: string }, ids: Ids) {
    const { store, sealer, clock, limits, checkAddress } = this.#parts;
    const { app, username = "", password, created_by } = wanted;
    const id = ids.short();
    const secret = ids.hex(64);
    const webhook: GitWebhook = {
      id,
      app_id: app.id,
      repository: checkAddress(wanted.repository),
      username,
      password: password === undefined ? null : sealer.seal(place(id, "password"), password),
      secret: sealer.seal(place(id, "secret"), secret),
      token: sealer.seal(place(id, "token"), token.text),
      token_id: token.id,
      created_by,
      created_at: clock.now(),
    };
    if (!(await store.insert(webhook, limits.webhooks_per_app)))
      fail("limit_reached", `an app has at most ${limits.webhooks_per_app} Git webhooks (limit webhooks_per_app)`);
    return { webhook, secret };
  }

  async delete(app: Pick<GitApp, "id" | "org_id">, id: string): Promise<void> {
    const { store, revoke } = this.#parts;
    const webhook = await store.find(id);
    if (webhook?.app_id !== app.id) return unknown(id);
    await revoke(app.org_id, webhook.token_id);
    await store.delete(app.id, id);
  }

  async deliveries(app_id: string, id: string): Promise<Delivery[]> {
    const { store, limits } = this.#parts;
    const [webhook, deliveries] = await Promise.all([store.find(id), store.deliveries(id, limits.webhook_deliveries)]);
    return webhook?.app_id === app_id ? deliveries : unknown(id);
  }

  /** Whether the webhook is this app's, before anything of a body is read. */
  async find(app_name: string, id: string): Promise<GitWebhook> {
    const webhook = await this.#parts.store.find(id);
    const app = webhook && (await this.#parts.appOf(webhook.app_id));
    return webhook && app?.name === app_name ? webhook : unknown(id);
  }

  /** Records the work that an event requests, to be done later. */
  async receive(webhook: GitWebhook, headers: IncomingHttpHeaders, body: Uint8Array, ids: Ids): Promise<Answer> {
    const { store, sealer, clock, limits, node_id } = this.#parts;
    const secret = sealer.open(place(webhook.id, "secret"), webhook.secret).toString();
    if (!isSigned(headers, body, secret))
      fail("unauthorized", "the event is not signed with the webhook's secret", {
        hint: "X-Hub-Signature-256 or X-Gitea-Signature is the HMAC-SHA256 of the body; enter the secret of hangar git connect",
      });
    const payload = payloadOf(headers, body) ?? fail("malformed_json", "the event is neither JSON nor a form with one");
    const event = eventName(headers);
    const said = readEvent(event, payload);
    if (said.kind === "ping") return { result: "pong" };
    if (said.kind === "ignored") return { result: "ignored", why: said.why };
    const now = clock.now();
    const delivery: Delivery = {
      id: ids.ulid(),
      webhook_id: webhook.id,
      node_id,
      delivery: deliveryName(headers).slice(0, limits.delivery_name_chars),
      digest: createHash("sha256").update(`${event}\n`).update(body).digest("hex"),
      event,
      branch: said.branch,
      action: said.kind,
      state: "queued",
      result: "",
      git_commit: null,
      received_at: now,
      ended_at: null,
    };
    const most = { open: limits.webhook_queue, keep: limits.webhook_deliveries };
    const taken = await store.receive(delivery, most);
    if (taken === "full")
      fail("overloaded", `${limits.webhook_queue} events of this webhook wait already (limit webhook_queue)`, {
        retry_after_s: 60,
      });
    if (taken === "repeated") return { result: "repeated" };
    // One that failed before has its first id.
    for (const known of await store.unfinished(node_id))
      if (known.webhook_id === webhook.id && known.digest === delivery.digest) this.#queue(known);
    return { result: "queued" };
  }

  #queue(delivery: Delivery): void {
    const running = this.#slots.use(() => this.#work(delivery));
    this.#running.add(running);
    void running.finally(() => this.#running.delete(running));
  }

  async #work(delivery: Delivery): Promise<void> {
    const { store, clock, log } = this.#parts;
    const { signal } = this.#closing;
    // It stays queued, and the next start takes it up.
    if (signal.aborted) return;
    const lines: string[] = [];
    try {
      await store.change(delivery.id, { state: "running" });
      const { result, git_commit = null } = await this.#deploy(delivery, (line) => lines.push(line));
      await store.change(delivery.id, { state: "done", result, git_commit, ended_at: clock.now() });
    } catch (thrown) {
      if (signal.aborted) return;
      const text = [...lines.slice(-TAIL_LINES), ...problemLines(thrown, log)].join("\n").slice(-RESULT_CHARS);
      const change = { state: "failed", result: text, ended_at: clock.now() } as const;
      await store.change(delivery.id, change).catch((error: unknown) => log.warn({ error }, "a delivery was not kept"));
    }
  }

  async #deploy(delivery: Delivery, say: (line: string) => void): Promise<{ result: string; git_commit?: string }> {
    const { store, previews, remote, limits, deployBranch, appOf, deployToken, sealer } = this.#parts;
    const webhook = await store.find(delivery.webhook_id);
    const app = webhook && (await appOf(webhook.app_id));
    const { branch } = delivery;
    if (!webhook || !app || branch === null) return { result: "the webhook was deleted in the meantime" };
    // First: a webhook of a revoked token deletes and fetches nothing, either.
    const token = await deployToken(sealer.open(place(webhook.id, "token"), webhook.token).toString(), app);
    const deploy_branch = await deployBranch(app.id);
    const is_live = branch === deploy_branch;
    if (!is_live && delivery.action === "close") return { result: await this.#drop(app, branch) };
    if (delivery.action === "close") return { result: "the deploy branch is not deployed by a closed pull request" };
    const signal = AbortSignal.any([this.#closing.signal, AbortSignal.timeout(limits.push_ms)]);
    const from: RemoteRepository = {
      url: webhook.repository,
      username: webhook.username,
      password:
        webhook.password === null ? undefined : sealer.open(place(webhook.id, "password"), webhook.password).toString(),
    };
    const head = await remote.head(from, branch, signal);
    if (head === undefined) return { result: is_live ? `${branch} is not there` : await this.#drop(app, branch) };
    if (!is_live && !(await previews.wants(app.id, branch)))
      return { result: `${app.name} has no previews; hangar previews settings on --app ${app.name}` };
    let result = "";
    await this.#parts.turns.take(
      app.id,
      () => {},
      async () => {
        result = await this.#pull(app, { from, head, branch, deploy_branch, is_live, token, say, signal });
      },
      signal,
    );
    return { result, git_commit: head };
  }

  async #drop(app: GitApp, branch: string): Promise<string> {
    const name = await this.#parts.previews.branchDeleted(app.id, branch);
    return name === undefined ? "there was no preview" : `the preview ${name} is deleted`;
  }

  /** Fetches the commit, deploys it, and then moves the branch here to it. */
  async #pull(app: GitApp, wanted: Pull): Promise<string> {
    const { repositories, confinement, limits, previews, remote } = this.#parts;
    const { branch, head, is_live, signal } = wanted;
    const dir = await repositories.open(app, wanted.deploy_branch);
    const git = { confinement, limits, dir, signal };
    const ref = `refs/heads/${branch}`;
    const here = await refsOf(git);
    if (here.get(ref) === head && (is_live || (await previews.isRunning(app.id, branch))))
      return `${head.slice(0, 12)} is deployed already`;
    const work = join(dir, "work", `webhook-${process.pid}-${++this.#made}`);
    openFolder(work);
    try {
      const have = [...new Set(here.values())].slice(0, limits.remote_haves);
      const room = Math.min(limits.push_bytes, await repositories.room(app));
      await fetchPack(git, remote.pack(wanted.from, { want: head, have }, signal), { head, room });
      appendFileSync(join(work, COMMITS), `${head}\n`);
      if (!is_live) appendFileSync(join(work, PREVIEWS), `${branch}\n`);
      await this.#deployCommit(app, wanted, { dir, work });
      await setRef(git, ref, head);
      await repositories.repackIfNeeded(app);
      return is_live ? `deployed ${head.slice(0, 12)}` : `deployed ${head.slice(0, 12)} as a preview`;
    } finally {
      await setRef(git, FETCHED, undefined).catch(() => {});
      await rm(work, { recursive: true, force: true });
    }
  }

  async #deployCommit(app: GitApp, wanted: Pull, { dir, work }: { dir: string; work: string }): Promise<void> {
    const { branch, head, is_live, token, say, signal } = wanted;
    const options = is_live ? [] : [`--preview=${branch}`];
    const commit = { app_name: app.name, branch, commit: head, token, options, dir, work, objects: "", say, signal };
    const deployed = await deployCommit(this.#parts, commit).catch(async (thrown: unknown) => {
      if (!is_live) await this.#parts.previews.abandoned(app.id, branch);
      throw thrown;
    });
    if (deployed) return;
    if (!is_live) await this.#parts.previews.abandoned(app.id, branch);
    throw new PushRefused(`${branch} was not deployed; the reason is above.`);
  }
}

interface Pull {
  from: RemoteRepository;
  head: string;
  branch: string;
  deploy_branch: string;
  is_live: boolean;
  token: string;
  say(line: string): void;
  signal: AbortSignal;
}

const FETCHED = "refs/hangar/fetched";
const place = (id: string, what: string): string => `git webhook:${id}:${what}`;
const unknown = (id: string): never => fail("not_found", `there is no Git webhook ${JSON.stringify(id.slice(0, 40))}`);
