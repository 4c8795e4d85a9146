import { NoHostError } from "./trouble.ts";

/** The timeline of a cluster that a server writes: a promotion starts a new one. */
export interface Timeline {
  cluster: string;
  timeline: number;
}

/** Queried in every session where the URL has several hosts. A standby has none. */
export const TIMELINE = `SELECT (SELECT system_identifier FROM pg_control_system())::text AS cluster,
  ('x' || substr(pg_walfile_name(pg_current_wal_lsn()), 1, 8))::bit(32)::int AS timeline
  WHERE NOT pg_is_in_recovery()`;

/** A primary from before a promotion that was not fenced: writes that it accepts are lost. */
export class OldPrimaryError extends NoHostError {}

/** Persists timelines across restarts. */
export interface TimelineFile {
  load(): Record<string, number>;
  save(newest: Record<string, number>): void;
}

interface Session {
  destroy(): void;
}

/**
 * The newest timeline that this process has seen of each cluster, and its sessions by timeline. When a newer one is
 * found, all sessions with older ones are closed.
 */
export class Timelines {
  readonly #sessions = new Map<Session, Timeline>();
  readonly #newest: Record<string, number> = {};
  #file: TimelineFile | undefined;
  #onOld: (text: string) => void = () => {};
  readonly #reported = new Set<string>();

  /** Loads the timelines of earlier processes, and stores those of this one. */
  keepIn(file: TimelineFile, onOld: (text: string) => void): void {
    this.#file = file;
    this.#onOld = onOld;
    for (const [cluster, timeline] of Object.entries(file.load())) this.raise({ cluster, timeline });
  }

  /** Admits a session, or throws when its server is an old primary. */
  admit(session: Session, seen: Timeline): void {
    this.raise(seen);
    const newest = this.#newest[seen.cluster] ?? 0;
    if (seen.timeline < newest) {
      const text = `a host of the database URL is an old primary that was not fenced: it accepts writes on timeline ${seen.timeline}, the database has gone on with timeline ${newest}`;
      this.#report(text);
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
      this.#report(
        `the database has gone on with timeline ${timeline}: ${old.length} sessions with an old primary were ended`,
      );
  }

  /** Reports each once: every connection finds it again. */
  #report(text: string): void {
    if (this.#reported.has(text)) return;
    this.#reported.add(text);
    this.#onOld(text);
  }
}

/** One for all URLs of a process, because clusters have unique ids. */
export const TIMELINES = new Timelines();
