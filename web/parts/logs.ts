/** Lines that machines write, as they write them: of one machine, or of all machines of an app. */

import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { LEVELS, type Line, readLine, textOf } from "#client/log-line.ts";
import { useCell } from "../cell.ts";
import { oncePerFrame } from "../frame.ts";
import { a, button, code, dd, div, dl, dt, h, input, option, section, select, span } from "../html.ts";
import { place, remember, to } from "../router.ts";
import { session } from "../session.ts";
import { empty, problem } from "./basics.ts";
import { clockTime, plural } from "./format.ts";
import { matches } from "./log-line.ts";

interface Source {
  app_name: string;
  /** All machines of the app when absent. */
  machine_id?: string;
}

const TAIL = 1000;
/** Older lines are dropped; the download has what is shown. */
const MAX_LINES = 5000;
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
      kept = kept.slice(-MAX_LINES);
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

const AGES = [
  ["all kept", 0],
  ["5 min", 300],
  ["15 min", 900],
  ["1 h", 3600],
  ["24 h", 86_400],
] as const satisfies (readonly [string, number])[];

interface Chosen {
  q: string;
  level: string;
  machine: string;
  /** Seconds. */
  since: string;
}

/** What is filtered by is part of the address, so that it can be shared. */
function useChosen(): [Chosen, (change: Partial<Chosen>) => void] {
  const { query } = useCell(place);
  const read = (): Chosen => ({
    q: query.get("q") ?? "",
    level: query.get("level") ?? "",
    machine: query.get("machine") ?? "",
    since: query.get("since") ?? "",
  });
  const [chosen, setChosen] = useState(read);
  useEffect(() => setChosen(read()), [query]);
  const change = (part: Partial<Chosen>): void => {
    const next = { ...chosen, ...part };
    remember({ ...next });
    setChosen(next);
  };
  return [chosen, change];
}

export function Logs({ source, nothing }: { source: Source; nothing: VNode }): VNode {
  const { lines, open: ready, error } = useLines(source);
  const [chosen, choose] = useChosen();
  const [follow, setFollow] = useState(true);
  const [held, setHeld] = useState<readonly Line[]>([]);
  const now = follow ? lines : held;
  const shown = useMemo(() => {
    const since = chosen.since === "" ? 0 : Date.now() - Number(chosen.since) * 1000;
    const wanted = { text: chosen.q, level: chosen.level, machine: chosen.machine, since };
    return now.filter((line) => matches(line, wanted));
  }, [now, chosen]);
  const toggle = (): void => {
    setHeld(lines);
    setFollow(!follow);
  };
  if (error !== undefined) return problem(error);
  if (!ready) return div({ class: "log skeleton", "aria-busy": true });
  const count = shown.length === now.length ? "" : `${shown.length.toLocaleString("en")} of `;
  return section(
    { "aria-label": "Logs" },
    div(
      { class: "filters" },
      input({
        type: "search",
        "aria-label": "Filter lines",
        placeholder: "Only lines with…  ( / )",
        value: chosen.q,
        onInput: (event) => choose({ q: event.currentTarget.value }),
      }),
      pick("Level", chosen.level, [["", "every level"], ...LEVELS.map((level) => [level, level] as const)], (level) =>
        choose({ level }),
      ),
      source.machine_id === undefined ? h(MachineChoice, { lines: now, chosen, choose }) : null,
      pick(
        "Time",
        chosen.since,
        AGES.map(([name, seconds]) => [seconds === 0 ? "" : String(seconds), seconds === 0 ? name : `last ${name}`]),
        (since) => choose({ since }),
      ),
      button({ type: "button", "aria-pressed": !follow, onClick: toggle }, follow ? "Pause" : "Follow"),
      h(Download, { lines: shown, name: `${source.machine_id ?? source.app_name}.log` }),
      span({ class: "dim", role: "status" }, `${count}${plural(now.length, "line")}${follow ? "" : ", paused"}`),
    ),
    h(Earlier, { source, chosen, followed: now }),
    now.length === 0
      ? nothing
      : shown.length === 0
        ? empty("No line matches.", button({ type: "button", onClick: () => choose(NO_FILTER) }, "Show all lines"))
        : h(Lines, { lines: shown, follow, app_name: source.app_name }),
  );
}

/** Lines of one request for earlier ones. */
const EARLIER = 500;

interface Found {
  lines: readonly Line[];
  cursor: string | undefined;
  note: string;
}

async function searchEarlier(
  source: Source,
  chosen: Chosen,
  until: number | undefined,
  cursor?: string,
): Promise<Found> {
  const client = session.value?.client;
  const query = {
    order: "newest" as const,
    limit: EARLIER,
    ...(chosen.q ? { search: chosen.q } : {}),
    ...(chosen.level ? { level: chosen.level as "error" } : {}),
    ...(chosen.since ? { since: `${chosen.since}s` } : {}),
    ...(until === undefined ? {} : { until: new Date(until).toISOString() }),
    ...(cursor ? { cursor } : {}),
  };
  const { app_name, machine_id } = source;
  const machine = chosen.machine ? { machine: chosen.machine } : {};
  const found =
    machine_id === undefined
      ? await client?.call("GET /v1/apps/:app_name/logs", { params: { app_name }, query: { ...query, ...machine } })
      : await client?.call("GET /v1/apps/:app_name/machines/:machine_id/logs", {
          params: { app_name, machine_id },
          query,
        });
  const away = (found?.away ?? []).map(({ host_id }) => `lines of host ${host_id} are missing`);
  const damaged = (found?.damaged ?? []).map((id) => `a part of the log of ${id} is damaged`);
  return { lines: found?.lines ?? [], cursor: found?.cursor, note: [...away, ...damaged].join("; ") };
}

/** Kept lines before those that were followed, by the same filter: searched on request, since they are many. */
function Earlier({ source, chosen, followed }: { source: Source; chosen: Chosen; followed: readonly Line[] }): VNode {
  const [found, setFound] = useState<Found | undefined>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  const latest = useRef(0);
  const { app_name, machine_id } = source;
  // What was found by another filter is not shown with this one, also when it arrives late.
  useEffect(() => {
    latest.current++;
    setFound(undefined);
    setError(undefined);
    setBusy(false);
  }, [app_name, machine_id, chosen]);
  const search = (): void => {
    const own = ++latest.current;
    setBusy(true);
    // Lines of the same millisecond may be on both sides.
    const first = followed[0]?.timestamp;
    const known = new Set(followed.filter(({ timestamp }) => timestamp === first).map(({ message }) => message));
    const is_new = ({ timestamp, message }: Line): boolean => timestamp !== first || !known.has(message);
    searchEarlier(source, chosen, first === undefined ? undefined : first + 1, found?.cursor)
      .then(
        (more) => {
          if (own !== latest.current) return;
          setFound({ ...more, lines: [...more.lines.filter(is_new).toReversed(), ...(found?.lines ?? [])] });
        },
        (thrown: unknown) => own === latest.current && setError(thrown),
      )
      .finally(() => own === latest.current && setBusy(false));
  };
  const is_end = found !== undefined && found.cursor === undefined;
  return div(
    { class: "earlier" },
    is_end
      ? span({ class: "dim", role: "status" }, `${plural(found.lines.length, "earlier line")}, no more are kept`)
      : button(
          { type: "button", onClick: search, disabled: busy, "aria-busy": busy },
          found === undefined ? "Search earlier lines" : "Search further back",
        ),
    found?.note ? span({ class: "dim" }, found.note) : null,
    error === undefined ? null : problem(error),
    found && found.lines.length > 0 ? h(Lines, { lines: found.lines, follow: false, app_name }) : null,
  );
}

const NO_FILTER: Chosen = { q: "", level: "", machine: "", since: "" };

function pick(
  name: string,
  value: string,
  all: readonly (readonly [value: string, name: string])[],
  choose: (value: string) => void,
): VNode {
  return select(
    { "aria-label": name, value, onChange: (event) => choose(event.currentTarget.value) },
    ...all.map(([each, text]) => option({ key: each, value: each }, text)),
  );
}

function MachineChoice(props: {
  lines: readonly Line[];
  chosen: Chosen;
  choose: (change: Partial<Chosen>) => void;
}): VNode {
  const names = new Map(props.lines.map(({ machine_id = "", machine_name = "" }) => [machine_id, machine_name]));
  return pick("Machine", props.chosen.machine, [["", "every machine"], ...names], (machine) =>
    props.choose({ machine }),
  );
}

function Lines({ lines, follow, app_name }: { lines: readonly Line[]; follow: boolean; app_name: string }): VNode {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (follow && element.current) element.current.scrollTop = element.current.scrollHeight;
  }, [lines, follow]);
  return div(
    { class: "log lines", ref: element, tabIndex: 0, role: "log", "aria-label": "Lines" },
    ...lines.map((line, index) => h(LogLine, { key: `${line.timestamp} ${lines.length - index}`, line, app_name })),
  );
}

function LogLine({ line, app_name }: { line: Line; app_name: string }): VNode {
  const [open, setOpen] = useState(false);
  const { level, text, fields, request_id } = readLine(line);
  const { timestamp, stream, machine_id, machine_name } = line;
  return div(
    { class: `${stream} ${level ?? ""}` },
    span({ class: "at", title: new Date(timestamp).toISOString() }, clockTime(timestamp)),
    div(
      { class: "said" },
      machine_name && machine_id
        ? a({ class: "from", href: to("machines", app_name, machine_id) }, machine_name)
        : null,
      level ? span({ class: `level ${level}` }, level) : null,
      code(text),
      fields.length > 0
        ? button(
            { type: "button", class: "fields", "aria-expanded": open, onClick: () => setOpen(!open) },
            open ? "hide fields" : fields.map(([name, value]) => `${name}=${textOf(value)}`).join(" "),
          )
        : null,
      request_id
        ? a(
            { class: "request-id", href: `${to("apps", app_name, "logs")}?q=${encodeURIComponent(request_id)}` },
            "request",
          )
        : null,
      open ? h(Fields, { fields }) : null,
    ),
  );
}

const Fields = ({ fields }: { fields: readonly [string, unknown][] }): VNode =>
  dl(
    { class: "line-fields" },
    ...fields.flatMap(([name, value]) => [
      dt({ key: `${name} name` }, name),
      dd({ key: name }, code(typeof value === "string" ? value : JSON.stringify(value, null, 2))),
    ]),
  );

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
