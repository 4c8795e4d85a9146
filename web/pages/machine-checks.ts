import type { VNode } from "preact";
import { code, h, p } from "../html.ts";
import { Ago, badge, block, empty, sheet } from "../parts/basics.ts";
import type { TabProps } from "./machine-tab.ts";

const EXAMPLE = `"checks": { "alive": { "type": "http", "port": 8080, "path": "/", "interval": "15s" } }`;

/** Latest results of the machine's checks. */
export function Checks({ machine }: TabProps): VNode {
  const checks = Object.values(machine.checks);
  if (checks.length === 0) {
    return empty(
      "It has no checks, or does not run.",
      p("A check probes a port regularly; requests go only to healthy machines. In the config:"),
      block(EXAMPLE),
    );
  }
  return sheet(
    "Checks",
    ["check", "status", "since", "said"],
    checks.map(({ name, status, output, updated_at }) => ({
      key: name,
      cells: [code(name), badge(status), h(Ago, { ms: Date.parse(updated_at) }), output],
    })),
  );
}
