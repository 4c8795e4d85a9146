import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { button, code, div, h, input, label, p, section, span } from "../html.ts";
import { block, empty, loading, problem, useAnswer } from "../parts/basics.ts";
import { clockTime, plural } from "../parts/format.ts";
import { call } from "../session.ts";
import type { TabProps } from "./machine.ts";

const TAIL = 1000;
const EVERY_MS = 2000;

interface Line {
  timestamp: number;
  stream: string;
  message: string;
}

/** The newest lines, looked at again while the tab is seen; a line that holds the text, or all. */
export function LogsTab({ machine, app_name, turn }: TabProps): VNode {
  const [round, setRound] = useState(0);
  const [filter, setFilter] = useState("");
  const [follow, setFollow] = useState(true);
  useEffect(() => {
    const timer = setInterval(() => {
      if (follow && !document.hidden) setRound((n) => n + 1);
    }, EVERY_MS);
    return () => clearInterval(timer);
  }, [follow]);
  const { value, error } = useAnswer(
    (signal) =>
      call("GET /v1/apps/:app_name/machines/:machine_id/logs", {
        params: { app_name, machine_id: machine.id },
        query: { tail: TAIL },
        signal,
      }),
    [machine.id, turn, round],
  );
  const lines = value?.lines ?? [];
  const shown = useMemo(
    () => lines.filter(({ message }) => message.toLowerCase().includes(filter.toLowerCase())),
    [value, filter],
  );
  if (error !== undefined) return problem(error);
  if (!value) return loading();
  return section(
    { "aria-label": "Logs" },
    div(
      { class: "filters" },
      input({
        type: "search",
        "aria-label": "Filter lines",
        placeholder: "Only lines with…  ( / )",
        value: filter,
        onInput: (event) => setFilter(event.currentTarget.value),
      }),
      label(
        { class: "check" },
        input({ type: "checkbox", checked: follow, onChange: () => setFollow(!follow) }),
        "Follow",
      ),
      span(
        { class: "dim" },
        filter ? `${shown.length} of ${plural(lines.length, "line")}` : plural(lines.length, "line"),
      ),
      h(Download, { lines, name: `${machine.id}.log` }),
    ),
    lines.length === 0
      ? empty(
          "It has written nothing yet.",
          p("What its processes write to stdout and stderr appears here, and with:"),
          block(`npx hangar machines logs ${machine.id} --app ${app_name}`),
        )
      : h(Lines, { lines: shown, follow }),
  );
}

function Lines({ lines, follow }: { lines: readonly Line[]; follow: boolean }): VNode {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (follow && element.current) element.current.scrollTop = element.current.scrollHeight;
  }, [lines, follow]);
  return div(
    { class: "log", ref: element, tabIndex: 0, role: "log", "aria-label": "Lines" },
    ...lines.map(({ timestamp, stream, message }, index) =>
      div({ key: `${timestamp} ${index}`, class: stream }, span({ class: "at" }, clockTime(timestamp)), code(message)),
    ),
  );
}

function Download({ lines, name }: { lines: readonly Line[]; name: string }): VNode {
  const save = (): void => {
    const text = lines.map(
      ({ timestamp, stream, message }) => `${new Date(timestamp).toISOString()} ${stream} ${message}\n`,
    );
    const href = URL.createObjectURL(new Blob(text, { type: "text/plain" }));
    const anchor = Object.assign(document.createElement("a"), { href, download: name });
    anchor.click();
    URL.revokeObjectURL(href);
  };
  return button({ type: "button", onClick: save, disabled: lines.length === 0 }, "Download");
}
