import type { VNode } from "preact";
import { a, code, p, span, time } from "../html.ts";
import type { FeedLine, Live } from "../nodes.ts";
import { to } from "../router.ts";
import { badge, card, sheet } from "./basics.ts";
import { clockTime, exactTime, plural } from "./format.ts";

const LINES_SHOWN = 30;

/** Database events, newest first. */
export function Feed({ lines, link }: Pick<Live, "link"> & { lines: readonly FeedLine[] }): VNode {
  const rows = lines
    .slice(0, LINES_SHOWN)
    .map((line) => ({ key: line.key, cells: [at(line), node(line), ...what(line)] }));
  return card(
    "As it happens",
    link === "broken" ? p({ role: "status" }, "The connection is broken; it is tried again.") : null,
    rows.length === 0
      ? p({ class: "dim" }, "Transactions and primary changes appear here from now on.")
      : sheet("Transactions and changes, newest first", ["when", "node", "event", "what"], rows),
  );
}

const at = ({ timestamp }: FeedLine): VNode =>
  time({ dateTime: new Date(timestamp).toISOString(), title: exactTime(timestamp) }, clockTime(timestamp));

const node = ({ app_name, machine_id, machine_name }: FeedLine): VNode =>
  a({ href: to("machines", app_name, machine_id) }, machine_name);

/** The event's type and text. */
function what(line: FeedLine): [VNode | string, VNode | string] {
  switch (line.type) {
    case "tx":
      return [
        "tx",
        span(code(line.db), ` ${plural(line.transactions, "transaction")}, now at ${line.txid.toLocaleString("en")}`),
      ];
    case "primary":
      return [badge(line.primary ? "primary" : "replica"), primaryWords(line.primary, line.hostname)];
    case "gone":
      return ["gone", "its machine no longer runs"];
    case "node":
      return line.state ? ["back", "it answers again"] : [badge("unreachable"), line.reason];
  }
}

const primaryWords = (primary: boolean, hostname: string | undefined): string => {
  if (primary) return "became primary";
  return hostname === undefined ? "no primary" : `follows ${hostname}`;
};
