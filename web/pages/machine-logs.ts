import type { VNode } from "preact";
import { h, p } from "../html.ts";
import { block, empty } from "../parts/basics.ts";
import { Logs } from "../parts/logs.ts";
import type { TabProps } from "./machine-tab.ts";

export function LogsTab({ machine, app_name }: TabProps): VNode {
  return h(Logs, {
    source: { app_name, machine_id: machine.id },
    nothing: empty(
      "No log lines yet.",
      p("The stdout and stderr of its processes appear here, and with:"),
      block(`hangar machines logs ${machine.id} --app ${app_name}`),
    ),
  });
}
