/**
 * Preview apps: branches that are deployed as apps of their own. The row comes first and goes last, so a preview that was
 * being made or deleted when the process ended is known to the next one, which removes what there is of it.
 */
import { createHash } from "node:crypto";
import type { App } from "#apps/types.ts";
import type { Clock } from "#core/clock.ts";
import { ApiError, fail } from "#core/errors.ts";
import { type Ids, repeatableIds } from "#core/ids.ts";
import type { PageRequest } from "#core/list-page.ts";
import type { Log } from "#core/log.ts";
import { toSlug } from "#core/names.ts";
import { PREVIEW_BRANCH } from "./branch-names.ts";
import type { GitLimits } from "./limits.ts";
import { DEFAULT_PREVIEWS, type Preview, type PreviewSettings, type PreviewStore } from "./preview-store.ts";

export interface PreviewParts {
  store: PreviewStore;
  /** What a preview is made of, in other modules. */
  apps: PreviewApps;
  clock: Clock;
  limits: GitLimits;
  log: Log;
}

export interface PreviewApps {
  /** An app with the parent's network and egress policy; `ids` decide which id it gets. */
  create(parent: App, name: string, ids: Ids): Promise<void>;
  exists(id: string): Promise<boolean>;
  /** Sets secrets with a value and removes those with null. */
  setSecrets(app_id: string, values: Record<string, string | null>): Promise<void>;
  /** The values of those of the app's secrets that have these names. */
  secrets(app_id: string, names: readonly string[]): Promise<Record<string, string>>;
  /** Removes the app and all that is its own, as far as there is any. */
  remove(preview: Preview): Promise<void>;
}

export interface OpenInput {
  branch: string;
  git_commit: string | null;
  created_by: string;
}

const NAME_PART = 26;
const HASH_CHARS = 8;

/**
 * `shop-feature-x-1f0c2a9b`: the app's and the branch's name, truncated, and a hash that distinguishes branches with the
 * same truncated name.
 */
export function previewName(parent: Pick<App, "id" | "name">, branch: string): string {
  const hash = createHash("sha256").update(`${parent.id} ${branch}`).digest("hex").slice(0, HASH_CHARS);
  const parts = [parent.name, toSlug(branch)].map((text) => text.slice(0, NAME_PART).replace(/-+$/, ""));
  return [...parts.filter((text) => text !== ""), hash].join("-");
}

export class Previews {
  readonly #parts: PreviewParts;
  readonly #removing = new Map<string, Promise<void>>();

  constructor(parts: PreviewParts) {
    this.#parts = parts;
  }

  async settings(app_id: string): Promise<PreviewSettings> {
    return (await this.#parts.store.settings(app_id)) ?? DEFAULT_PREVIEWS;
  }

  async putSettings(app_id: string, change: Partial<PreviewSettings>): Promise<PreviewSettings> {
    const settings = { ...(await this.settings(app_id)), ...change };
    if (settings.enabled && (await this.#parts.store.byId(app_id)))
      fail("git_refused", "this app is a preview itself: its branches have no previews");
    if (!(await this.#parts.store.putSettings(app_id, settings)))
      fail("not_found", "the app was deleted in the meantime");
    return settings;
  }

  /** Whether a push of the branch makes or updates a preview. */
  async wants(app_id: string, branch: string): Promise<boolean> {
    return PREVIEW_BRANCH.test(branch) && (await this.settings(app_id)).enabled;
  }

  list(parent_id: string, page: PageRequest<readonly [branch: string]>): Promise<Preview[]> {
    return this.#parts.store.list(parent_id, page);
  }

  async get(parent_id: string, app_name: string): Promise<Preview> {
    const { store } = this.#parts;
    return (await store.named(parent_id, app_name)) ?? fail("not_found", `there is no preview ${app_name}`);
  }

  /** Whether the branch has a preview that has been deployed. */
  async isRunning(parent_id: string, branch: string): Promise<boolean> {
    const preview = await this.#parts.store.find(parent_id, branch);
    return preview?.state === "open" && (await this.isDeployed(preview));
  }

  isDeployed(preview: Preview): Promise<boolean> {
    return this.#parts.store.isDeployed(preview.id);
  }

  /** Ids of the app's previews that have been deployed. */
  deployed(parent_id: string): Promise<ReadonlySet<string>> {
    return this.#parts.store.deployed(parent_id);
  }

  /** The preview of a branch, ready to be deployed: made, or with today's secrets. */
  async open(parent: App, { branch, git_commit, created_by }: OpenInput, ids: Ids) {
    const { store, clock, limits } = this.#parts;
    const settings = await this.settings(parent.id);
    if (!settings.enabled)
      fail("git_refused", `${parent.name} has no previews`, {
        hint: `hangar previews settings on --app ${parent.name}`,
      });
    const now = clock.now();
    const settled_at = now + limits.push_ms;
    const known = await store.find(parent.id, branch);
    if (known && known.state === "open" && (await this.#parts.apps.exists(known.id))) {
      await store.change(known.id, { git_commit, pushed_at: now, settled_at });
      await this.#copySecrets(known, settings.secrets);
      return { preview: { ...known, git_commit, pushed_at: now, settled_at }, is_new: false };
    }
    // A preview that is being deleted has the same name: its deletion ends first.
    if (known) await this.remove(known);
    const seed = ids.bytes(32);
    const preview: Preview = {
      id: repeatableIds(seed, now).short(),
      parent_id: parent.id,
      org_id: parent.org_id,
      branch,
      app_name: previewName(parent, branch),
      state: "open",
      git_commit,
      copied: [],
      created_by,
      created_at: now,
      pushed_at: now,
      settled_at,
    };
    await this.#insert(preview, parent, settings);
    try {
      await this.#parts.apps.create(parent, preview.app_name, repeatableIds(seed, now));
      await this.#copySecrets(preview, settings.secrets);
    } catch (thrown) {
      await this.remove(preview);
      throw thrown;
    }
    return { preview, is_new: true };
  }

  async #insert(preview: Preview, { name }: App, { most }: PreviewSettings): Promise<void> {
    const { store, limits } = this.#parts;
    const hint = `hangar previews delete, or hangar previews settings --most, for app ${name}`;
    const refused = await store.insert(preview, { per_app: most, per_org: limits.previews_per_org });
    if (refused === "exists") fail("conflict", `another push is making the preview of ${preview.branch}; push again`);
    if (refused === "no_app") fail("not_found", "the app was deleted in the meantime");
    if (refused === "app_limit")
      fail("limit_reached", `${name} has ${most} previews, as many as its settings allow`, { hint });
    if (refused === "org_limit")
      fail("limit_reached", `this organization has ${limits.previews_per_org} previews (limit previews_per_org)`, {
        hint,
      });
  }

  /** The named secrets as they are now; those that are no longer named go. */
  async #copySecrets({ id, parent_id, copied }: Preview, names: readonly string[]): Promise<void> {
    const { store, apps } = this.#parts;
    if (names.length + copied.length === 0) return;
    const values = await apps.secrets(parent_id, names);
    const gone = copied.filter((name) => !Object.hasOwn(values, name));
    // Both are recorded first, so that none is forgotten there by a crash in between.
    await store.change(id, { copied: [...new Set([...copied, ...Object.keys(values)])] });
    await apps.setSecrets(id, { ...values, ...Object.fromEntries(gone.map((name) => [name, null])) });
    await store.change(id, { copied: Object.keys(values) });
  }

  /** A deploy of the branch has failed, or ended with its process: a preview that never ran goes. */
  async abandoned(parent_id: string, branch: string): Promise<Preview | undefined> {
    const { store } = this.#parts;
    const preview = await store.find(parent_id, branch);
    if (!preview || (await store.isDeployed(preview.id))) return preview;
    await store.putDeleting(preview.id);
    void this.remove(preview).catch((error: unknown) => this.#warn(preview, error));
    return undefined;
  }

  /** Schedules the deletion of a deleted branch's preview; returns its name. */
  async branchDeleted(parent_id: string, branch: string): Promise<string | undefined> {
    const { store } = this.#parts;
    const preview = await store.find(parent_id, branch);
    if (!preview) return undefined;
    await store.putDeleting(preview.id);
    void this.remove(preview).catch((error: unknown) => this.#warn(preview, error));
    return preview.app_name;
  }

  /** Deletes the previews of a deleted app. */
  appDeleted(parent_id: string): void {
    const all = this.#parts.store.list(parent_id, { limit: this.#parts.limits.previews_per_app });
    const removing = all.then(async (list) => {
      for (const preview of list) await this.remove(preview);
    });
    removing.catch((error: unknown) =>
      this.#parts.log.warn({ error }, "previews of a deleted app could not be removed; it will be tried again"),
    );
  }

  /** Deletes a preview; its branch stays in the repository. Resolves when nothing of it is left. */
  async delete(parent_id: string, app_name: string): Promise<void> {
    await this.remove(await this.get(parent_id, app_name));
  }

  /** Deletes a preview with its resources. Concurrent calls wait for the same deletion. */
  remove(preview: Preview): Promise<void> {
    const running = this.#removing.get(preview.id);
    if (running) return running;
    const removing = this.#remove(preview).finally(() => this.#removing.delete(preview.id));
    this.#removing.set(preview.id, removing);
    return removing;
  }

  async #remove(preview: Preview): Promise<void> {
    const { store, apps } = this.#parts;
    await store.putDeleting(preview.id);
    await apps.remove(preview);
    await store.remove(preview.id);
  }

  /** Removes previews whose time is over, or that an earlier process was about to remove. */
  async expire(): Promise<void> {
    const { store, clock, limits } = this.#parts;
    for (const preview of await store.due(clock.now(), limits.previews_per_sweep)) {
      if (this.#removing.has(preview.id)) continue;
      await this.remove(preview).catch((error: unknown) => this.#warn(preview, error));
    }
  }

  async close(): Promise<void> {
    await Promise.allSettled(this.#removing.values());
  }

  #warn({ app_name }: Preview, error: unknown): void {
    const { log } = this.#parts;
    if (error instanceof ApiError && error.code === "shutting_down") return;
    log.warn({ error, app: app_name }, "a preview could not be removed; it will be tried again");
  }
}
