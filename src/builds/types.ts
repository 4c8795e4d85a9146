/** A build makes an image of a folder with a Dockerfile. */
export type BuildState = "queued" | "running" | "complete" | "failed" | "cancelled";

export const ENDED: readonly BuildState[] = ["complete", "failed", "cancelled"];

export interface Build {
  /** 14 hex digits, as a machine has: it gets an address in the organization's network. */
  id: string;
  app_id: string;
  org_id: string;
  state: BuildState;
  /** The process that runs it: when that is lost or restarted, the build has failed. */
  node_id: string;
  /** It was cancelled while it ran; the process that runs it stops it. */
  cancel_requested: boolean;
  dockerfile: string;
  target: string | null;
  no_cache: boolean;
  /** Files of the context, and their bytes. */
  files: number;
  bytes: number;
  /** The name of the image, and its digest once it is built. */
  image: string;
  digest: string | null;
  /** The step that began last: `3/7 RUN make`. */
  step: string | null;
  /** Why it failed. */
  error: string | null;
  created_by: string;
  created_at: number;
  started_at: number | null;
  ended_at: number | null;
}

/** A build in a list of its organization's. */
export interface OrgBuild extends Build {
  app_name: string;
}

/** One file, folder or link of a context. */
export interface ContextEntry {
  path: string;
  /** Of a file: the SHA-256 of its bytes, 64 hex digits. */
  sha256?: string | undefined;
  /** Of a symbolic link: where it leads. Neither: a folder. */
  link?: string | undefined;
  mode?: number | undefined;
}

export interface BuildOptions {
  dockerfile: string;
  target?: string | undefined;
  args: Readonly<Record<string, string>>;
  /** In memory alone, until the build has ended. */
  secrets: Readonly<Record<string, string>>;
  no_cache: boolean;
}

export interface NewBuild extends BuildOptions {
  files: readonly ContextEntry[];
  platform?: string | undefined;
}

/** The owner of context files. Files are per app: a token may be narrowed to one app, and a digest is no secret. */
export interface ContextOwner {
  org_id: string;
  app_id: string;
}
