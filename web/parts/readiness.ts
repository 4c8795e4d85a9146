/** Shows which parts of the platform are not ready, why, and what that means for who looks at it. */
import type { VNode } from "preact";
import { useCell } from "../cell.ts";
import { div, li, p, strong, ul } from "../html.ts";
import { type NotReady, readiness } from "../readiness.ts";

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
