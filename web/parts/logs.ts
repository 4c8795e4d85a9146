/** Lines that machines write, as they write them: of one machine, or of all machines of an app. */
import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { oncePerFrame } from "../frame.ts";
import { button, code, div, h, input, label, section, span } from "../html.ts";
import { session } from "../session.ts";
import { loading, problem } from "./basics.ts";
import { clockTime, plural } from "./format.ts";

interface Line {
  timestamp: number;
  stream: string;
  message: string;
  machine_id?: string;
  machine_name?: string;
}

interface Source {
  app_name: string;
  /** All machines of the app when absent. */
  machine_id?: string;
}

const TAIL = 500;
/** Older lines are dropped; the download has what is shown. */
const KEPT = 5000;
const RETRY_MS = 3000;

function open({ app_name, machine_id }: Source, signal: AbortSignal): AsyncGenerator<Line> | undefined {
  const query = { follow: true, tail: TAIL };
  const client = session.value?.client;
  return machine_id === undefined
    ? client?.stream("GET /v1/apps/:app_name/logs", { params: { app_name }, query, signal })
    : client?.stream("GET /v1/apps/:app_name/machines/:machine_id/logs", {
        params: { app_name, machine_id },
        query,
        signal,
      });
}

interface Followed {
  lines: readonly Line[];
  open: boolean;
  error: unknown;
}

/** Follows the stream; lines that arrive together are rendered together. */
function useLines(source: Source): Followed {
  const [state, setState] = useState<Followed>({ lines: [], open: false, error: undefined });
  useEffect(() => {
    const ending = new AbortController();
    let kept: Line[] = [];
    const drawing = oncePerFrame(() => {
      kept = kept.slice(-KEPT);
      setState({ lines: kept, open: true, error: undefined });
    });
    const follow = async (): Promise<void> => {
      kept = [];
      drawing.ask();
      for await (const line of open(source, ending.signal) ?? []) {
        kept.push(line);
        drawing.ask();
      }
    };
    const again = (): void => {
      if (!ending.signal.aborted) setTimeout(begin, RETRY_MS);
    };
    const begin = (): void => {
      if (ending.signal.aborted) return;
      follow().then(again, (error: unknown) => {
        if (ending.signal.aborted) return;
        setState((last) => ({ ...last, error }));
        again();
      });
    };
    begin();
    return () => {
      ending.abort();
      drawing.stop();
    };
  }, [source.app_name, source.machine_id]);
  return state;
}

export function Logs({ source, nothing }: { source: Source; nothing: VNode }): VNode {
  const { lines, open: ready, error } = useLines(source);
  const [filter, setFilter] = useState("");
  const [follow, setFollow] = useState(true);
  const [held, setHeld] = useState<readonly Line[]>([]);
  const now = follow ? lines : held;
  const shown = useMemo(() => matching(now, filter), [now, filter]);
  const toggle = (): void => {
    setHeld(lines);
    setFollow(!follow);
  };
  if (error !== undefined) return problem(error);
  if (!ready) return loading();
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
      label({ class: "check" }, input({ type: "checkbox", checked: follow, onChange: toggle }), "Follow"),
      span({ class: "dim" }, filter ? `${shown.length} of ${plural(now.length, "line")}` : plural(now.length, "line")),
      h(Download, { lines: now, name: `${source.machine_id ?? source.app_name}.log` }),
    ),
    now.length === 0 ? nothing : h(Lines, { lines: shown, follow }),
  );
}

function matching(lines: readonly Line[], filter: string): readonly Line[] {
  if (filter === "") return lines;
  const low = filter.toLowerCase();
  return lines.filter(({ message, machine_name = "" }) => `${machine_name} ${message}`.toLowerCase().includes(low));
}

function Lines({ lines, follow }: { lines: readonly Line[]; follow: boolean }): VNode {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (follow && element.current) element.current.scrollTop = element.current.scrollHeight;
  }, [lines, follow]);
  return div(
    { class: "log", ref: element, tabIndex: 0, role: "log", "aria-label": "Lines" },
    ...lines.map(({ timestamp, stream, message, machine_name }, index) =>
      div(
        { key: `${timestamp} ${index}`, class: stream },
        span({ class: "at" }, clockTime(timestamp)),
        code(machine_name ? span({ class: "from" }, machine_name) : null, message),
      ),
    ),
  );
}

function Download({ lines, name }: { lines: readonly Line[]; name: string }): VNode {
  const save = (): void => {
    const text = lines.map(
      ({ timestamp, stream, message, machine_name = "" }) =>
        `${new Date(timestamp).toISOString()} ${machine_name ? `${machine_name} ` : ""}${stream} ${message}\n`,
    );
    const href = URL.createObjectURL(new Blob(text, { type: "text/plain" }));
    Object.assign(document.createElement("a"), { href, download: name }).click();
    URL.revokeObjectURL(href);
  };
  return button({ type: "button", onClick: save, disabled: lines.length === 0 }, "Download");
}
