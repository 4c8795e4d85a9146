/** The small things every page is made of. */
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useId, useState } from "preact/hooks";
import { ClientError } from "#client/client.ts";
import { Cell, useCell } from "../cell.ts";
import {
  a,
  button,
  code,
  div,
  h,
  h1,
  h2,
  header,
  label,
  li,
  nav,
  p,
  pre,
  section,
  span,
  strong,
  table,
  tbody,
  td,
  th,
  thead,
  time,
  tr,
  ul,
} from "../html.ts";
import { isStale, readiness, returns } from "../readiness.ts";
import { ago, exactTime } from "./format.ts";
import { type IconName, icon } from "./icon.ts";

type Children = ComponentChildren;

/** The current time for relative times: one clock per page, every ten seconds. */
const now = new Cell(Date.now());
setInterval(() => now.set(Date.now()), 10_000);

export function Ago({ ms }: { ms: number }): VNode {
  const at = useCell(now);
  return time({ dateTime: new Date(ms).toISOString(), title: exactTime(ms) }, ago(ms, Math.max(at, Date.now())));
}

const TONES: Record<string, string> = {
  healthy: "good",
  degraded: "warn",
  down: "bad",
  asleep: "cold",
  empty: "calm",
  started: "good",
  allow: "good",
  deny: "bad",
  passing: "good",
  ok: "good",
  attached: "good",
  active: "good",
  signing: "good",
  error: "bad",
  complete: "good",
  ready: "good",
  issued: "good",
  retired: "calm",
  published: "cold",
  failed: "bad",
  "build failed": "bad",
  "deploy failed": "bad",
  firing: "bad",
  pending: "warn",
  delivered: "good",
  resolved: "calm",
  silenced: "calm",
  critical: "bad",
  unreachable: "bad",
  unknown: "warn",
  warning: "warn",
  suspended: "cold",
  primary: "good",
  replica: "calm",
  stopped: "calm",
  created: "calm",
  destroyed: "calm",
};

/** A state with a dot; the dot of a transitional state pulses. */
export function badge(state: string): VNode {
  return span({ class: `badge ${TONES[state] ?? "busy"}` }, state);
}

export function pageHead(title: string, ...actions: Children[]): VNode {
  return header({ class: "page-head" }, h1(title), div({ class: "actions" }, ...actions));
}

export function card(title: Children, ...children: Children[]): VNode {
  return section({ class: "card" }, h2(title), ...children);
}

/** An empty state: what would be here, and what to do next. */
export function empty(what: string, ...next: Children[]): VNode {
  return div({ class: "empty" }, p(strong(what)), ...next);
}

/** Views of one thing, each with an address. */
export function tabs(name: string, views: readonly { title: string; href: string; here: boolean }[]): VNode {
  return nav(
    { class: "tabs", "aria-label": name },
    ...views.map(({ title, href, here }) => a({ key: title, href, "aria-current": here ? "page" : undefined }, title)),
  );
}

/** A small table; on a phone every row is a card. */
export function sheet(name: string, columns: readonly string[], rows: readonly SheetRow[]): VNode {
  return div(
    { class: "table-wrap", tabIndex: 0, role: "region", "aria-label": name },
    table(
      // Explicit roles, because CSS cards remove the table semantics.
      { class: "plain sheet", role: "table" },
      thead({ role: "rowgroup" }, tr({ role: "row" }, ...columns.map(columnHead))),
      tbody(
        { role: "rowgroup" },
        ...rows.map(({ key, class: style = "", cells }) =>
          tr({ key, role: "row", class: style }, ...cells.map((cell, index) => sheetCell(cell, index, columns))),
        ),
      ),
    ),
  );
}

const columnHead = (name: string): VNode => th({ key: name, role: "columnheader", scope: "col" }, name);

const sheetCell = (cell: Children, index: number, columns: readonly string[]): VNode =>
  td({ key: index, role: "cell", "data-name": columns[index] }, cell);

interface SheetRow {
  key: string;
  class?: string;
  cells: readonly Children[];
}

/** An error with its hint and problems. */
export function problem(thrown: unknown): VNode {
  const error = thrown instanceof ClientError ? thrown : new ClientError(0, { error: String(thrown) });
  const { hint, details = [], request_id } = error.body;
  const problems = Array.isArray(details) ? (details as { path?: string; problem?: string; allowed?: string }[]) : [];
  return div(
    { class: "problem", role: "alert" },
    p(strong(error.message)),
    problems.length > 1
      ? ul(
          ...problems.map((one) =>
            li(code(one.path ?? ""), ` ${one.problem ?? ""}`, one.allowed ? ` (${one.allowed})` : ""),
          ),
        )
      : null,
    hint ? p(hint) : null,
    request_id ? p({ class: "dim" }, "request ", code(request_id)) : null,
  );
}

export function loading(what = "Loading"): VNode {
  return p({ class: "loading", role: "status" }, `${what}…`);
}

function CopyButton({ text, name = "Copy" }: { text: string; name?: string }): VNode {
  const [done, setDone] = useState(false);
  const copy = async (): Promise<void> => {
    await copyText(text);
    setDone(true);
    setTimeout(() => setDone(false), 1500);
  };
  return button(
    { type: "button", class: "quiet", title: name, "aria-label": done ? "Copied" : name, onClick: () => void copy() },
    icon(done ? "check" : "copy"),
  );
}

/** Without TLS there is no clipboard API, so a text field is used. */
async function copyText(text: string): Promise<void> {
  if (navigator.clipboard) return await navigator.clipboard.writeText(text).catch(() => {});
  const field = Object.assign(document.createElement("textarea"), { value: text, className: "offscreen" });
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
}

/** Text to copy: a command, a config, a token. */
export function block(text: string, name = "Copy"): VNode {
  return div({ class: "block" }, pre({ tabIndex: 0 }, code(text)), h(CopyButton, { text, name }));
}

/** A long identifier, shortened. */
export function identifier(text: string): VNode {
  return span({ class: "identifier" }, code(text), h(CopyButton, { text, name: `Copy ${text}` }));
}

interface FieldProps {
  name: string;
  hint?: string | undefined;
  /** What is wrong with its value. */
  error?: string | undefined;
  children: (id: string) => Children;
}

export function Field({ name, hint, error, children }: FieldProps): VNode {
  const id = useId();
  return div(
    { class: `field ${error ? "wrong" : ""}` },
    label({ for: id }, name),
    children(id),
    error ? span({ class: "hint error", id: `${id}-error`, role: "alert" }, error) : null,
    hint ? span({ class: "hint" }, hint) : null,
  );
}

interface Loaded<T> {
  value: T | undefined;
  error: unknown;
  again: () => void;
}

/**
 * Loads when rendered, and again when one of `keys` changes or the database came back. The last result stays meanwhile.
 */
export function useAnswer<T>(ask: (signal: AbortSignal) => Promise<T>, keys: readonly unknown[]): Loaded<T> {
  const [state, setState] = useState<{ value?: T; error?: unknown }>({});
  const [round, setRound] = useState(0);
  const back = useCell(returns);
  useEffect(() => {
    const ending = new AbortController();
    ask(ending.signal).then(
      (value) => {
        if (!ending.signal.aborted) setState({ value });
      },
      (error: unknown) => {
        if (ending.signal.aborted) return;
        // The header says that what is shown is out of date: better than nothing.
        const outdated = isStale(readiness.value);
        setState((last) => (outdated && last.value !== undefined ? last : { ...last, error }));
      },
    );
    return () => ending.abort();
    // The function differs at each render; `keys` are the dependencies.
  }, [...keys, round, back]);
  return { value: state.value, error: state.error, again: () => setRound((n) => n + 1) };
}

/** The value, or a placeholder. */
export function when<T>({ value, error }: Loaded<T>, show: (value: T) => Children): Children {
  if (error !== undefined) return problem(error);
  return value === undefined ? loading() : show(value);
}

interface Toast {
  id: number;
  text: string;
  error?: unknown;
}

const toasts = new Cell<readonly Toast[]>([]);
let lastToast = 0;

/** Shows a notification; errors stay until closed. */
export function showMessage(text: string, error?: unknown): void {
  const toast: Toast = { id: ++lastToast, text, ...(error === undefined ? {} : { error }) };
  toasts.set([...toasts.value, toast].slice(-4));
  if (error === undefined) setTimeout(() => dismiss(toast.id), 5000);
}

const dismiss = (id: number): void => toasts.set(toasts.value.filter((toast) => toast.id !== id));

export function Toasts(): VNode {
  const shown = useCell(toasts);
  return div(
    { class: "toasts", "aria-live": "polite" },
    ...shown.map((toast) =>
      div(
        { key: toast.id, class: `toast ${toast.error === undefined ? "" : "bad"}` },
        div(p(toast.text), toast.error === undefined ? null : problem(toast.error)),
        button(
          { type: "button", class: "quiet", "aria-label": "Close", onClick: () => dismiss(toast.id) },
          icon("close"),
        ),
      ),
    ),
  );
}

/** A button that is disabled while its action runs, and shows errors. */
export function Action(props: {
  name: string;
  work: () => Promise<unknown>;
  class?: string;
  disabled?: boolean;
  title?: string;
  icon?: IconName;
}): VNode {
  const [busy, setBusy] = useState(false);
  const run = async (): Promise<void> => {
    setBusy(true);
    await props.work().catch((thrown: unknown) => showMessage(`${props.name} did not work`, thrown));
    setBusy(false);
  };
  return button(
    {
      type: "button",
      class: props.class ?? "",
      disabled: busy || props.disabled === true,
      "aria-busy": busy,
      ...(props.title ? { title: props.title } : {}),
      onClick: () => void run(),
    },
    props.icon ? icon(props.icon) : null,
    props.name,
  );
}
