import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { BOARDS } from "../boards.ts";
import { a, div, h, label, option, p, select, span } from "../html.ts";
import type { PageProps } from "../page-props.ts";
import { empty, pageHead, tabs, useAnswer } from "../parts/basics.ts";
import { choices, SPANS } from "../parts/controls.ts";
import { labelValues } from "../prometheus.ts";
import { remember, to } from "../router.ts";
import { Board } from "./board.ts";
import { Explorer } from "./metrics-explore.ts";

const FURTHER: readonly (readonly [string, number])[] = [...SPANS, ["7 d", 604_800]];
const EXPLORE = "explore";

/** Ready-made boards, and an explorer for queries of one's own. */
export function Page({ path, query }: PageProps): VNode {
  const [seconds, setSeconds] = useState(3600);
  const [app, setApp] = useState(query.get("app") ?? "");
  // An address with a query is one of the explorer.
  const tab = path[0] ?? (query.has("query") ? EXPLORE : BOARDS[0][0]);
  const board = BOARDS.find(([name]) => name === tab);
  const choose = (name: string): void => {
    setApp(name);
    remember({ app: name });
  };
  return div(
    pageHead("Metrics"),
    tabs("Boards", [
      ...BOARDS.map(([name, title]) => ({ title, href: to("metrics", name), here: name === tab })),
      { title: "Explore", href: to("metrics", EXPLORE), here: tab === EXPLORE },
    ]),
    board || tab === EXPLORE
      ? choices(
          { class: "filters", label: "Time range" },
          FURTHER,
          seconds,
          setSeconds,
          board && board[0] !== "hosts" ? h(AppChoice, { app, choose }) : null,
        )
      : empty(`There is no board ${tab}.`, p(a({ href: to("metrics") }, "Boards"))),
    board ? h(Board, { key: tab, name: board[0], app, seconds }) : null,
    tab === EXPLORE ? h(Explorer, { query, seconds }) : null,
  );
}

function AppChoice({ app, choose }: { app: string; choose: (app: string) => void }): VNode {
  const names = useAnswer((signal) => labelValues("app", signal), []).value ?? [];
  const all = app === "" || names.includes(app) ? names : [app, ...names];
  return label(
    { class: "inline" },
    span("App"),
    select(
      { value: app, onChange: (event) => choose(event.currentTarget.value) },
      option({ value: "" }, "all"),
      ...all.map((name) => option({ key: name, value: name }, name)),
    ),
  );
}
