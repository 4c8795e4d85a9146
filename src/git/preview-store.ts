import type { PageRequest } from "#core/list-page.ts";

/** An app's preview apps: whether there are any, and what they get. */
export interface PreviewSettings {
  enabled: boolean;
  /** Days after its last push until a preview is deleted. */
  days: number;
  /** Previews that the app may have at a time. */
  most: number;
  /** Names of the app's secrets that its previews get; no other is copied. */
  secrets: readonly string[];
}

export const DEFAULT_PREVIEWS: PreviewSettings = { enabled: false, days: 7, most: 5, secrets: [] };

/** A branch that is deployed as an app of its own. */
export interface Preview {
  /** That of its app, too. */
  id: string;
  /** The app whose branch it is. */
  parent_id: string;
  org_id: string;
  branch: string;
  app_name: string;
  /** `deleting`: it is being removed, and stays so until nothing of it is left. */
  state: "open" | "deleting";
  git_commit: string | null;
  /** Secrets that were copied from its parent. */
  copied: readonly string[];
  created_by: string;
  created_at: number;
  pushed_at: number;
  /** Until then its first deploy may be under way; afterwards a preview that never ran is removed. */
  settled_at: number;
}

export type PreviewRefusal = "exists" | "app_limit" | "org_limit" | "no_app";

/** Stores previews; decides nothing. Implemented in stores/, tested by `preview-store.suite.ts`. */
export interface PreviewStore {
  /** Undefined when nothing was set. */
  settings(app_id: string): Promise<PreviewSettings | undefined>;
  /** False when the app does not exist. */
  putSettings(app_id: string, settings: PreviewSettings): Promise<boolean>;
  /** Records what is about to be made. Writes nothing when it answers why not. */
  insert(preview: Preview, most: { per_app: number; per_org: number }): Promise<PreviewRefusal | undefined>;
  find(parent_id: string, branch: string): Promise<Preview | undefined>;
  named(parent_id: string, app_name: string): Promise<Preview | undefined>;
  /** The preview with this id, which is that of its app. */
  byId(id: string): Promise<Preview | undefined>;
  /** Ordered by branch. */
  list(parent_id: string, page: PageRequest<readonly [branch: string]>): Promise<Preview[]>;
  change(
    id: string,
    change: Partial<Pick<Preview, "git_commit" | "copied" | "pushed_at" | "settled_at">>,
  ): Promise<void>;
  /** False when it does not exist. */
  putDeleting(id: string): Promise<boolean>;
  /** Forgets it, with its tokens. Only when it is being deleted. */
  remove(id: string): Promise<void>;
  /** Previews to remove: marked so, past their days, of a deleted app, or never deployed. */
  due(now: number, limit: number): Promise<Preview[]>;
  /** Whether a release of it is complete. */
  isDeployed(id: string): Promise<boolean>;
  /** Previews of an app of which that is so, by id. */
  deployed(parent_id: string): Promise<ReadonlySet<string>>;
  /** Records a token that deploys it, and drops those that have expired. */
  addToken(id: string, token_id: string, now: number): Promise<void>;
}
