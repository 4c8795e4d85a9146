import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { div, h, h2 } from "../html.ts";
import { choices, SPANS } from "../parts/controls.ts";
import type { AppTabProps } from "./app-tab.ts";
import { Board } from "./board.ts";

/** The boards of apps and machines, for this app. */
export function AppBoards({ app_name }: AppTabProps): VNode {
  const [seconds, setSeconds] = useState<number>(3600);
  return div(
    choices<number>({ class: "filters", label: "Time range" }, SPANS, seconds, setSeconds),
    h(Board, { name: "apps", app: app_name, seconds }),
    h2({ class: "part" }, "Machines"),
    h(Board, { name: "machines", app: app_name, seconds }),
  );
}
