import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { type Client, ClientError } from "#client/client.ts";
import { openTerminal, type RemoteTerminal, type TerminalEnd } from "#client/terminal.ts";
import { ACTIONS } from "../actions.ts";
import { useCell } from "../cell.ts";
import { button, div, h, kbd, p, section, span, textarea } from "../html.ts";
import { Action, badge, block, empty } from "../parts/basics.ts";
import { isReadOnly, session } from "../session.ts";
import { Emulator } from "../terminal/emulator.ts";
import { bytesOf, pasted } from "../terminal/keys.ts";
import { View } from "../terminal/view.ts";
import type { TabProps } from "./machine-tab.ts";

const START = ACTIONS.find(({ name }) => name === "Start");

/** A shell in the machine, as `hangar ssh` gives one. */
export function Terminal({ machine, app_name }: TabProps): VNode {
  const now = useCell(session);
  const [tries, setTries] = useState(0);
  const [state, setState] = useState<string | undefined>("opening…");
  const [over, setOver] = useState(false);
  const screen = useRef<HTMLDivElement>(null);
  const keys = useRef<HTMLTextAreaElement>(null);
  const usable = !isReadOnly(now) && machine.state === "started";
  useEffect(() => {
    if (!usable || !now || !screen.current || !keys.current) return;
    setOver(false);
    setState("opening…");
    const setStatus = (status: string | undefined, ended: boolean): void => {
      setState(status);
      setOver(ended);
    };
    return connect(now.client, { app_name, machine_id: machine.id }, screen.current, keys.current, setStatus);
  }, [tries, usable, machine.id]);
  if (isReadOnly(now)) return empty("A read-only token opens no terminal.");
  if (!usable && !over) {
    return empty(
      "A terminal opens only in a machine that runs.",
      p("This one is ", badge(machine.state), "."),
      START?.from.includes(machine.state)
        ? p(
            h(Action, {
              name: "Start it",
              class: "primary",
              work: () => START.run({ app_name, machine_id: machine.id }),
            }),
          )
        : null,
      block(`hangar machines start ${machine.id} --app ${app_name}`),
    );
  }
  return section(
    { class: "terminal", "aria-label": "Terminal" },
    div(
      { class: "tube", onMouseUp: () => getSelection()?.isCollapsed !== false && keys.current?.focus() },
      div({ class: "screen", ref: screen, role: "log", "aria-live": "off", "aria-label": "Screen", tabIndex: 0 }),
      textarea({
        ref: keys,
        class: "keys",
        "aria-label": "Keyboard of the terminal",
        autocomplete: "off",
        autocapitalize: "off",
        spellcheck: false,
        rows: 1,
      }),
    ),
    div(
      { class: "foot" },
      span({ class: "dim", role: "status" }, state ?? "connected"),
      over ? button({ type: "button", disabled: !usable, onClick: () => setTries(tries + 1) }, "Open again") : null,
      span({ class: "dim hint" }, kbd("Shift Tab"), " leaves the terminal, ", kbd("Ctrl Shift C"), " copies"),
    ),
  );
}

type SetStatus = (status: string | undefined, ended: boolean) => void;

/** Connects screen, keys and size to the terminal until it ends. Returns the function that closes it. */
function connect(
  client: Client,
  where: { app_name: string; machine_id: string },
  host: HTMLElement,
  keys: HTMLTextAreaElement,
  setStatus: SetStatus,
): () => void {
  let line: RemoteTerminal | undefined;
  let disposed = false;
  const size = measured(host);
  const emulator = new Emulator(size.rows, size.cols, (text) => line?.send(text));
  const view = new View(host, emulator);
  const draw = (bytes: Uint8Array): void => {
    emulator.write(bytes);
    view.soon();
  };
  const opened = (terminal: RemoteTerminal): void => {
    line = terminal;
    if (disposed) {
      terminal.close();
      return;
    }
    setStatus(undefined, false);
    keys.focus();
    void terminal.ended.then((end) => {
      line = undefined;
      if (!disposed) setStatus(farewell(end), true);
    });
  };
  openTerminal(client, { ...where, ...size }, draw).then(opened, (thrown: unknown) => {
    const { body = {}, message } = thrown instanceof ClientError ? thrown : { message: String(thrown) };
    if (!disposed) setStatus([message, body.hint].filter(Boolean).join(" — "), true);
  });
  const follow = new ResizeObserver(() => {
    if (!host.isConnected) return;
    const { rows, cols } = measured(host);
    const { screen } = emulator;
    if (rows === screen.rows && cols === screen.cols) return;
    screen.resize(rows, cols);
    line?.resize({ rows, cols });
    view.soon();
  });
  follow.observe(host);
  const ends = listen(keys, emulator, (text) => line?.send(text));
  return () => {
    disposed = true;
    ends();
    follow.disconnect();
    view.close();
    line?.close();
  };
}

const farewell = ({ exit_code, reason }: TerminalEnd): string =>
  exit_code === undefined ? reason : `the program has ended with ${exit_code}`;

/** Special keys are sent as terminal sequences; other input arrives as text, also from other keyboards. */
function listen(keys: HTMLTextAreaElement, { screen }: Emulator, send: (text: string) => void): () => void {
  const ending = new AbortController();
  const { signal } = ending;
  const pressed = (event: KeyboardEvent): void => {
    if (event.isComposing) return;
    const bytes = bytesOf(event, screen.modes.keypad);
    // Ctrl+C copies a selection instead of being sent.
    if (bytes === undefined || (bytes === "\u0003" && getSelection()?.isCollapsed === false)) return;
    event.preventDefault();
    event.stopPropagation();
    send(bytes);
  };
  keys.addEventListener("keydown", pressed, { signal });
  keys.addEventListener(
    "input",
    (event) => {
      if ((event as InputEvent).isComposing) return;
      if (keys.value !== "") send(keys.value);
      keys.value = "";
    },
    { signal },
  );
  keys.addEventListener(
    "paste",
    (event) => {
      event.preventDefault();
      send(pasted(event.clipboardData?.getData("text") ?? "", screen.modes.paste));
    },
    { signal },
  );
  return () => ending.abort();
}

const PROBE = 50;

/** Rows and columns that fit. */
function measured(host: HTMLElement): { rows: number; cols: number } {
  const probe = document.createElement("span");
  probe.textContent = "M".repeat(PROBE);
  host.append(probe);
  const { width, height } = probe.getBoundingClientRect();
  const { paddingLeft, paddingTop, lineHeight } = getComputedStyle(host);
  probe.remove();
  // Detached elements have no size.
  const pixels = (text: string): number => Number.parseFloat(text) || 0;
  const line = pixels(lineHeight) || height || 18;
  const cols = Math.floor((host.clientWidth - 2 * pixels(paddingLeft)) / (width / PROBE || 8));
  const rows = Math.floor((host.clientHeight - 2 * pixels(paddingTop)) / line);
  return { rows: Math.max(5, Math.min(200, rows)), cols: Math.max(20, Math.min(400, cols)) };
}
