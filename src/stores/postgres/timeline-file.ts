import { readFileSync, renameSync, writeFileSync } from "node:fs";
import type { TimelineFile } from "./timelines.ts";

/** Stored as JSON in the data dir. Without it, or when it cannot be read, the reachable hosts decide. */
export const timelineFile = (file: string): TimelineFile => ({
  load() {
    try {
      const found = JSON.parse(readFileSync(file, "utf8")) as Record<string, unknown>;
      return Object.fromEntries(Object.entries(found).flatMap(([id, n]) => (typeof n === "number" ? [[id, n]] : [])));
    } catch {
      return {};
    }
  },
  save(newest) {
    try {
      writeFileSync(`${file}.new`, JSON.stringify(newest), { mode: 0o600, flush: true });
      renameSync(`${file}.new`, file);
    } catch {
      // A full disk must not make the database unavailable; this process knows it, and the next promotion is stored.
    }
  },
});
