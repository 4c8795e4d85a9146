import { NoHostError } from "./trouble.ts";

/** Which history of which cluster a server writes: a promotion begins a new timeline. */
export interface Timeline {
  cluster: string;
  timeline: number;
}

/** Asked of every session where the URL has several hosts. A standby writes none. */
export const TIMELINE = `SELECT (SELECT system_identifier FROM pg_control_system())::text AS cluster,
  ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int AS timeline
  WHERE NOT pg_is_in_recovery()`;

/** A primary from before a promotion that was not fenced: what it accepts nobody else will ever see. */
export class OldPrimaryError extends NoHostError {}

/** What is kept of it beyond this process. */
export interface TimelineFile {
  load(): Record<string, number>;
  save(newest: Record<string, number>): void;
}

interface Session {
  destroy(): void;
}

/**
 * The newest timeline that a process has seen of each cluster, and its sessions by theirs. Whoever finds a newer one ends the
 * sessions with older ones, whatever they are for.
 */
export class Timelines {
  readonly #sessions = new Map<Session, Timeline>();
  readonly #newest: Record<string, number> = {};
  #file: TimelineFile | undefined;
  #onOld: (text: string) => void = () => {};
  readonly #told = new Set<string>();

  /** What an earlier process saw counts as well, and what this one sees is kept. */
  keepIn(file: TimelineFile, onOld: (text: string) => void): void {
    this.#file = file;
    this.#onOld = onOld;
    for (const [cluster, timeline] of Object.entries(file.load())) this.raise({ cluster, timeline });
  }

  /** Takes a session up, or throws: its server is an old primary. */
  admit(session: Session, seen: Timeline): void {
    this.raise(seen);
    const newest = this.#newest[seen.cluster] ?? 0;
    if (seen.timeline < newest) {
      const text = `a host of the database URL is an old primary that was not fenced: it accepts writes on timeline ${seen.timeline}, the database has gone on with timeline ${newest}`;
      this.#tell(text);
      throw new OldPrimaryError(text);
    }
    this.#sessions.set(session, seen);
  }

  forget(session: Session): void {
    this.#sessions.delete(session);
  }

  raise({ cluster, timeline }: Timeline): void {
    if (timeline <= (this.#newest[cluster] ?? 0)) return;
    this.#newest[cluster] = timeline;
    this.#file?.save(this.#newest);
    const old = [...this.#sessions].filter(([, seen]) => seen.cluster === cluster && seen.timeline < timeline);
    for (const [session] of old) {
      this.#sessions.delete(session);
      session.destroy();
    }
    if (old.length > 0)
      this.#tell(
        `the database has gone on with timeline ${timeline}: ${old.length} sessions with an old primary were ended`,
      );
  }

  /** Once for each: every connection finds it again. */
  #tell(text: string): void {
    if (this.#told.has(text)) return;
    this.#told.add(text);
    this.#onOld(text);
  }
}

/** Clusters have ids of their own, so one for all URLs of a process will do. */
export const TIMELINES = new Timelines();
