/** Shows which parts of the platform are not ready, why, and what that means for who looks at it. */
import type { VNode } from "preact";
import { useCell } from "../cell.ts";
import { div, li, p, strong, time, ul } from "../html.ts";
import { isStale, type NotReady, readiness } from "../readiness.ts";
import { clockTime } from "./format.ts";

/** Names of parts, with what does not work without them. */
const PARTS: Record<string, { name: string; meaning: string }> = {
  database: {
    name: "Database",
    meaning: "Nothing can be read or changed until it is back. Machines that no other host may start keep running.",
  },
  executor: { name: "Executor", meaning: "Machines of this host are not started or stopped until it works." },
  proxy: { name: "Edge proxy", meaning: "Requests to apps may fail until it works." },
  lease: { name: "Host lease", meaning: "Machines that another host may start are frozen here until it is renewed." },
};

export const partName = (part: string): string => PARTS[part]?.name ?? part;

/** Above every page, while something is missing. */
export function NotReadyBanner(): VNode | null {
  const { missing } = useCell(readiness);
  return missing.length === 0 ? null : notReady(missing);
}

/** In the header, while the database is away: since when what the pages show may no longer be true. */
export function StaleNotice(): VNode | null {
  const now = useCell(readiness);
  if (!isStale(now)) return null;
  const { current_at } = now;
  const since =
    current_at === undefined
      ? []
      : [" since ", time({ dateTime: new Date(current_at).toISOString() }, clockTime(current_at))];
  return p(
    { class: "out-of-date", role: "status" },
    strong("Out of date", ...since),
    ": the database is away. What you see here may have changed.",
  );
}

export function notReady(missing: readonly NotReady[]): VNode {
  return div(
    { class: "problem not-ready", role: "alert" },
    p(strong("The platform is not ready")),
    ul(
      ...missing.map(({ part, reason }) =>
        li({ key: part }, strong(partName(part)), `: ${reason}. `, PARTS[part]?.meaning ?? ""),
      ),
    ),
  );
}
