/** The logs of this host's machines as queues, with the positions of their readers in files beside them. */
import { statSync } from "node:fs";
import { mkdir, readdir, readFile, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { LogQueue, LostLines, QueuePage } from "#machines/logs/queue.ts";
import { type Layout, pathsOf } from "../layout.ts";
import { absent, LogFiles, type OnDamage } from "./files.ts";
import { cursorSince, LOG_START, readOn } from "./logs.ts";
import type { StampedLine } from "./parse.ts";
import { deletedIn } from "./retention.ts";

/** In a machine's log folder: a file for each reader. */
const READERS = "readers";
const POSITION = /^\d{1,19}:\d{1,16}:\d{1,16}$/;
const NOTHING: LostLines = { gaps: 0, bytes: 0 };
const READER = /^[0-9a-z]{1,40}$/;
/** Pages without a wanted line that one call reads. */
const EMPTY_PAGES = 8;

export class DiskLogQueue implements LogQueue {
  readonly #layout: Layout;
  readonly #onDamage: OnDamage;

  constructor(layout: Layout, onDamage: OnDamage) {
    this.#layout = layout;
    this.#onDamage = onDamage;
  }

  async machines(): Promise<string[]> {
    return (await readdir(this.#layout.logs).catch(absent)) ?? [];
  }

  mark(id: string): string {
    const { log } = pathsOf(this.#layout, id);
    const marks = [log, `${log}.1`].map((file) => {
      const { ino = 0, size = 0 } = statSync(file, { throwIfNoEntry: false }) ?? {};
      return `${ino}.${size}`;
    });
    return marks.join(" ");
  }

  async read(id: string, from: { position: string } | { since: number }): Promise<QueuePage> {
    const paths = pathsOf(this.#layout, id);
    await using files = await LogFiles.open(paths, this.#onDamage);
    const since = "since" in from ? from.since : 0;
    let position = "since" in from ? cursorSince(files, since) : from.position;
    for (let pages = 1; ; pages++) {
      const { lines, cursor, is_gone } = await readOn(files, position);
      const gone = is_gone ? await this.#lost(paths.logs, position, cursor) : NOTHING;
      const wanted = since > 0 ? lines.filter(({ timestamp }) => timestamp >= since) : lines;
      const { gaps, bytes } = withFloods(gone, wanted);
      const lost = gaps > 0 ? { lost: { gaps, bytes } } : {};
      // Nothing is left: what is written from now on is read from its beginning.
      position = is_gone && cursor === position ? LOG_START : cursor;
      const is_end = lines.length === 0;
      const goes_on = wanted.length === 0 && !is_end && !is_gone && pages < EMPTY_PAGES;
      if (!goes_on) return { lines: wanted, position, is_end, ...lost };
    }
  }

  async position(id: string, reader: string): Promise<string | undefined> {
    const text = (await readFile(this.#file(id, reader), "utf8").catch(absent))?.trim();
    return text !== undefined && POSITION.test(text) ? text : undefined;
  }

  async keep(id: string, reader: string, position: string): Promise<void> {
    const file = this.#file(id, reader);
    const write = async (): Promise<void> => {
      await writeFile(`${file}.new`, `${position}\n`, { mode: 0o600 });
      await rename(`${file}.new`, file);
    };
    await write().catch(async (error: unknown) => {
      absent(error);
      // The first one of this log, unless that is gone.
      await mkdir(join(file, ".."), { mode: 0o700 }).catch(absent);
      await write().catch(absent);
    });
  }

  async forget(readers: ReadonlySet<string>): Promise<void> {
    for (const id of await this.machines()) {
      const folder = join(pathsOf(this.#layout, id).logs, READERS);
      for (const name of (await readdir(folder).catch(absent)) ?? [])
        if (!readers.has(name.replace(/\.new$/, ""))) await rm(join(folder, name), { force: true });
    }
  }

  #file(id: string, reader: string): string {
    if (!READER.test(reader)) throw new Error(`not the name of a reader: ${reader}`);
    return join(pathsOf(this.#layout, id).logs, READERS, reader);
  }

  /** What was deleted between a position and the one where reading went on. */
  async #lost(folder: string, from: string, to: string): Promise<LostLines> {
    const [first = "", , seen = "0"] = from.split(":");
    const [next = ""] = to.split(":");
    const between = (await deletedIn(folder)).filter(
      (file) => file.first >= first && (to === from || file.first < next),
    );
    const bytes = between.reduce((sum, file) => sum + file.bytes - (file.first === first ? Number(seen) : 0), 0);
    return { gaps: 1, bytes: Math.max(0, bytes) };
  }
}

/** With what was lost because a machine wrote too fast; a file that is gone for that reason is one gap, not two. */
function withFloods(gone: LostLines, lines: readonly StampedLine[]): LostLines {
  const floods = lines.flatMap(({ lost }) => lost ?? []);
  if (floods.length === 0) return gone;
  const bytes = floods.reduce((sum, each) => sum + each, gone.bytes);
  return { gaps: floods.length + (gone.bytes > 0 ? gone.gaps : 0), bytes };
}
