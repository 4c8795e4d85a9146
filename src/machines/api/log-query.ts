/** Reads the query of the log routes. */

import { parseDuration } from "#core/durations.ts";
import { fail, type Problem } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import type { Level } from "#core/log-line.ts";
import { parseField } from "../logs/filter.ts";
import { type LogOrder, readCursor } from "../logs/search.ts";
import type { Search } from "../logs/searches.ts";
import { bad } from "./routing.ts";

export interface LogQuery {
  tail?: number;
  since?: string;
  until?: string;
  search?: string;
  level?: Level;
  field?: string[];
  machine?: string;
  order?: LogOrder;
  limit?: number;
  cursor?: string;
  follow?: boolean;
}

const DEFAULT = 100;
const SEARCHES = ["until", "search", "level", "field", "machine", "order", "limit", "cursor"] as const;

/** The newest lines, as without a search. */
export function readTail({ tail, since }: LogQuery, now: number): { tail: number; since?: number } {
  const at = timeOf("since", since, now);
  return { tail: tail ?? DEFAULT, ...(at === undefined ? {} : { since: at }) };
}

/** A search; undefined when the query asks for no more than the newest lines. */
export function readSearch(query: LogQuery, now: number): Search | undefined {
  if (SEARCHES.every((name) => query[name] === undefined)) return undefined;
  const { search, level, field = [], tail, limit = tail ?? DEFAULT, cursor, follow } = query;
  const after =
    cursor === undefined ? undefined : (readCursor(cursor) ?? bad("query.cursor", "is not a cursor", CURSORS));
  const order = query.order ?? after?.order ?? "newest";
  if (after && after.order !== order) bad("query.order", `is not that of the cursor`, after.order);
  checkFields(field);
  if (follow) checkFollow(query, after?.order);
  const [since, until] = [timeOf("since", query.since, now), timeOf("until", query.until, now)];
  if (since !== undefined && until !== undefined && since >= until)
    bad("query.until", "is not after `since`", "a later time, or a shorter time ago");
  return {
    filter: { ...(search ? { text: search } : {}), ...(level ? { level } : {}), fields: field },
    order,
    limit: Math.max(1, limit),
    ...(since === undefined ? {} : { since }),
    ...(until === undefined ? {} : { until }),
    ...(after ? { after: after.after } : {}),
  };
}

const CURSORS = "the `cursor` of an earlier response";

function checkFields(fields: readonly string[]): void {
  const problems = fields.flatMap((field, index): Problem[] =>
    parseField(field)
      ? []
      : [
          {
            path: `query.field[${index}]`,
            problem: "is not a test of a field",
            allowed: "name=value, name!=value, or name>=number with >, <, >= or <=",
          },
        ],
  );
  const [first] = problems;
  if (first)
    fail("invalid_request", `${first.path} ${first.problem}: ${first.allowed}`, {
      details: problems.slice(0, LIMITS.problems_listed),
    });
}

function checkFollow({ until, order }: LogQuery, cursor_order: LogOrder | undefined): void {
  if (until !== undefined) bad("query.until", "cannot be combined with `follow`, which has no end");
  if (cursor_order === "newest") bad("query.cursor", "cannot be followed", "a cursor of a search with `order=oldest`");
  if (order === "newest") bad("query.order", "cannot be combined with `follow`: lines come oldest first", "oldest");
}

function timeOf(name: "since" | "until", text: string | undefined, now: number): number | undefined {
  if (text === undefined || text === "") return undefined;
  const ago = parseDuration(text);
  const time = ago === undefined ? Date.parse(text) : now - ago;
  if (Number.isNaN(time)) bad(`query.${name}`, "is not a time", "2026-01-31T12:00:00Z, or how long ago, such as 15m");
  return time;
}
