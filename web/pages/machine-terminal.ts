import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ClientError } from "#client/client.ts";
import { useCell } from "../cell.ts";
import { code, div, form, input, label, p, pre, section, span } from "../html.ts";
import { badge, block, empty } from "../parts/basics.ts";
import { duration } from "../parts/format.ts";
import { call, isReadOnly, session } from "../session.ts";
import type { TabProps } from "./machine.ts";

interface Entry {
  command: string;
  out: string;
  err: string;
  /** Absent while it runs. */
  end?: string;
}

const TIMEOUT_S = 60;

/** Commands run in the machine one by one, each in a shell of its own, as `hangar machines exec` does. */
export function Terminal({ machine, app_name }: TabProps): VNode {
  const readOnly = isReadOnly(useCell(session));
  const [entries, setEntries] = useState<readonly Entry[]>([]);
  const [line, setLine] = useState("");
  const [back, setBack] = useState(0);
  const [busy, setBusy] = useState(false);
  const screen = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (screen.current) screen.current.scrollTop = screen.current.scrollHeight;
  }, [entries]);
  if (readOnly) return empty("A read-only token runs no commands.");
  if (machine.state !== "started") {
    return empty(
      "Commands run only in a machine that runs.",
      p("This one is ", badge(machine.state), ". Start it first:"),
      block(`npx hangar machines start ${machine.id} --app ${app_name}`),
    );
  }
  const run = async (event: Event): Promise<void> => {
    event.preventDefault();
    const command = line.trim();
    if (command === "" || busy) return;
    if (command === "clear") {
      setEntries([]);
      return setLine("");
    }
    setBusy(true);
    setLine("");
    setBack(0);
    setEntries((all) => [...all, { command, out: "", err: "" }]);
    const entry = await execute(app_name, machine.id, command);
    setEntries((all) => [...all.slice(0, -1), entry]);
    setBusy(false);
  };
  /** The commands before, with the arrows. */
  const recall = (event: KeyboardEvent): void => {
    const step = { ArrowUp: 1, ArrowDown: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    const next = Math.max(0, Math.min(entries.length, back + step));
    setBack(next);
    setLine(next === 0 ? "" : (entries[entries.length - next]?.command ?? ""));
  };
  return section(
    { class: "terminal", "aria-label": "Terminal" },
    div(
      { class: "screen", ref: screen, role: "log", "aria-label": "Output", tabIndex: 0 },
      entries.length === 0
        ? p(
            { class: "dim" },
            "Each line runs in a shell of its own inside the machine, for at most a minute. Arrow up brings back the last one; ",
            code("clear"),
            " empties the screen.",
          )
        : null,
      ...entries.map((entry, index) => shown(entry, index)),
    ),
    form(
      { onSubmit: (event) => void run(event) },
      label({ for: "command" }, span({ class: "offscreen" }, "Command"), span({ "aria-hidden": "true" }, "$")),
      input({
        id: "command",
        type: "text",
        autocomplete: "off",
        autocapitalize: "off",
        spellcheck: false,
        placeholder: busy ? "running…" : "ls -l /",
        value: line,
        onInput: (event) => setLine(event.currentTarget.value),
        onKeyDown: recall,
      }),
    ),
  );
}

function shown({ command, out, err, end }: Entry, index: number): VNode {
  return div(
    { key: index, class: "entry" },
    pre({ class: "command" }, `$ ${command}`),
    out ? pre(out) : null,
    err ? pre({ class: "err" }, err) : null,
    span({ class: "end" }, end ?? "running…"),
  );
}

async function execute(app_name: string, machine_id: string, command: string): Promise<Entry> {
  const began = performance.now();
  try {
    const { stdout, stderr, exit_code } = await call("POST /v1/apps/:app_name/machines/:machine_id/exec", {
      params: { app_name, machine_id },
      body: { command: ["/bin/sh", "-c", command], timeout: TIMEOUT_S },
    });
    return { command, out: stdout, err: stderr, end: `exit ${exit_code}, ${duration(performance.now() - began)}` };
  } catch (thrown) {
    const { body = {}, message } = thrown instanceof ClientError ? thrown : { message: String(thrown) };
    return { command, out: "", err: [message, body.hint].filter(Boolean).join("\n"), end: "did not run" };
  }
}
