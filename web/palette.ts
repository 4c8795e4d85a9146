/** Ctrl-K: every page, app and machine, what can be done to them, and the documentation, a few letters away. */
import type { VNode } from "preact";
import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { ACTIONS, perform } from "./actions.ts";
import { Cell, useCell } from "./cell.ts";
import { type FleetMachine, fleet } from "./fleet.ts";
import { useAppNames } from "./fleet-apps.ts";
import { div, h, input, li, span, ul } from "./html.ts";
import { PAGES } from "./pages.ts";
import { badge } from "./parts/basics.ts";
import { Dialog } from "./parts/dialog.ts";
import { type IconName, icon } from "./parts/icon.ts";
import { go } from "./router.ts";
import { call, isReadOnly, org, session, signOut } from "./session.ts";
import { isDark, setTheme } from "./theme.ts";

export const palette = new Cell(false);

interface Item {
  id: string;
  icon: IconName;
  text: string;
  /** Further search terms. */
  more: string;
  state?: string;
  run: () => void;
}

const SHOWN = 30;
/** The platform is asked when no key was pressed for this long. */
const TYPING_MS = 150;

addEventListener("keydown", (event) => {
  if ((event.ctrlKey || event.metaKey) && event.key.toLowerCase() === "k") {
    event.preventDefault();
    palette.set(!palette.value);
  }
  if (event.key === "/" && !isTyping(event.target)) {
    const filter = document.querySelector<HTMLInputElement>("main input[type=search]");
    if (!filter) return;
    event.preventDefault();
    filter.focus();
  }
});

const isTyping = (target: EventTarget | null): boolean =>
  target instanceof HTMLElement && target.matches("input, textarea, select, [contenteditable]");

function items(apps: readonly string[], machines: readonly FleetMachine[]): Item[] {
  return [
    ...PAGES.map(
      ({ id, title, icon: name }): Item => ({ id, icon: name, text: title, more: "page", run: () => go(id) }),
    ),
    { id: "new", icon: "plus", text: "New machine", more: "create run launch", run: () => go("machines", "new") },
    {
      id: "theme",
      icon: "theme",
      text: "Light or dark",
      more: "theme",
      run: () => setTheme(isDark() ? "light" : "dark"),
    },
    { id: "exit", icon: "exit", text: "Sign out", more: "leave", run: () => signOut() },
    ...DOCS.map(
      ([text, path, more]): Item => ({
        id: path,
        icon: "overview",
        text,
        more: `documentation ${more}`,
        run: () => window.open(path, "_blank", "noopener"),
      }),
    ),
    ...apps.map(
      (app): Item => ({ id: `app ${app}`, icon: "apps", text: app, more: "app", run: () => go("apps", app) }),
    ),
    ...apps.flatMap((app) =>
      APP_TABS.map(
        ([tab, text]): Item => ({
          id: `app ${app} ${tab}`,
          icon: "apps",
          text: `${app}: ${text}`,
          more: "app",
          run: () => go("apps", app, tab),
        }),
      ),
    ),
    ...actionItems(machines),
    ...machines.map(
      ({ id, name, app_name, state }): Item => ({
        id,
        icon: "machines",
        text: name,
        more: `${app_name} ${id}`,
        state,
        run: () => go("machines", app_name, id),
      }),
    ),
  ];
}

const APP_TABS = [
  ["releases", "releases and builds"],
  ["previews", "previews"],
  ["logs", "logs"],
  ["metrics", "metrics"],
  ["services", "network"],
  ["secrets", "secrets"],
  ["settings", "settings"],
] as const;

/** The API's own page, by part. */
const DOCS = [
  ["API reference", "/docs", "openapi curl"],
  ["API of machines", "/docs#machines", "fields config"],
  ["API of apps", "/docs#apps", "releases secrets deployments"],
  ["API of volumes", "/docs#volumes", "snapshots"],
  ["API of metrics", "/docs#metrics", "prometheus grafana"],
] as const;

/** What can be done to each machine now; destroying asks for confirmation, the rest can be undone. */
function actionItems(machines: readonly FleetMachine[]): Item[] {
  if (isReadOnly(session.value)) return [];
  return machines.flatMap((machine) =>
    ACTIONS.filter(({ from }) => from.includes(machine.state)).map(
      (action): Item => ({
        id: `${action.name} ${machine.id}`,
        icon: "activity",
        text: `${action.name} ${machine.name}`,
        more: `${machine.app_name} action`,
        run: () => void perform(action, [machine]),
      }),
    ),
  );
}

/** Items with every word, prefix matches first. */
function search(all: readonly Item[], typed: string): Item[] {
  const words = typed.toLowerCase().split(/\s+/).filter(Boolean);
  const found = all.filter(({ text, more }) => {
    const hay = `${text} ${more}`.toLowerCase();
    return words.every((word) => hay.includes(word));
  });
  const rank = ({ text, more }: Item): number =>
    (text.toLowerCase().startsWith(words[0] ?? "") ? 0 : 1) + (/action|documentation/.test(more) ? 2 : 0);
  return found.sort((x, y) => rank(x) - rank(y)).slice(0, SHOWN);
}

/** The machines here; of a large organization those that the platform finds. */
function useFound(typed: string): readonly FleetMachine[] {
  const { large, machines } = fleet.value;
  const own = useMemo(() => [...machines.values()], []);
  const [found, setFound] = useState<readonly FleetMachine[]>([]);
  useEffect(() => {
    if (!large || typed.trim() === "") return;
    const ending = new AbortController();
    const search = async (): Promise<void> => {
      const names = typed.trim().split(/\s+/);
      // The name of an action may be the first word: `restart shop-1`.
      const words = ACTIONS.some(({ name }) => name.toLowerCase().startsWith(names[0]?.toLowerCase() ?? ""))
        ? [names.slice(1), names]
        : [names];
      const answers = await Promise.all(
        words
          .filter((some) => some.length > 0)
          .map((some) =>
            call("GET /v1/orgs/:org_slug/machines", {
              params: { org_slug: org() },
              query: { search: some.join(" "), sort: "created", limit: SHOWN },
              signal: ending.signal,
            }),
          ),
      );
      setFound([
        ...new Map(answers.flatMap(({ machines: all }) => all).map((machine) => [machine.id, machine])).values(),
      ]);
    };
    const timer = setTimeout(() => void search().catch(() => {}), TYPING_MS);
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  }, [typed]);
  return large ? found : own;
}

export function Palette(): VNode | null {
  return useCell(palette) ? h(Open, {}) : null;
}

function Open(): VNode {
  const [typed, setTyped] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const apps = useAppNames();
  const machines = useFound(typed);
  const all = useMemo(() => items(apps, machines), [apps, machines]);
  const found = useMemo(() => search(all, typed), [all, typed]);
  const close = (): void => palette.set(false);
  const choose = (item: Item | undefined): void => {
    if (!item) return;
    close();
    item.run();
  };
  const keys: Record<string, (now: string) => void> = {
    ArrowDown: () => setAt((n) => Math.min(found.length - 1, n + 1)),
    ArrowUp: () => setAt((n) => Math.max(0, n - 1)),
    // Uses the current text: fast typing is ahead of rendering.
    Enter: (now) => choose(search(all, now)[at]),
  };
  useEffect(() => list.current?.children[at]?.scrollIntoView({ block: "nearest" }), [at]);
  return h(
    Dialog,
    { name: "Find anything", onClose: close, class: "palette" },
    input({
      type: "text",
      role: "combobox",
      "aria-label": "Find a page, a machine, an app, an action",
      "aria-expanded": true,
      "aria-controls": "palette-list",
      "aria-activedescendant": found[at] ? `palette-${at}` : undefined,
      placeholder: "A page, a machine, an app, an action…",
      autocomplete: "off",
      value: typed,
      onInput: (event) => {
        setTyped(event.currentTarget.value);
        setAt(0);
      },
      onKeyDown: (event) => {
        const act = keys[event.key];
        if (!act) return;
        event.preventDefault();
        act(event.currentTarget.value);
      },
    }),
    found.length === 0
      ? div({ class: "empty" }, "No match.")
      : ul(
          { id: "palette-list", role: "listbox", "aria-label": "Found", ref: list },
          ...found.map((item, index) =>
            li(
              {
                key: item.id,
                id: `palette-${index}`,
                role: "option",
                "aria-selected": index === at,
                onClick: () => choose(item),
                onMouseMove: () => setAt(index),
              },
              icon(item.icon),
              span(item.text),
              item.state ? badge(item.state) : null,
              span({ class: "dim" }, item.more),
            ),
          ),
        ),
  );
}
