import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import { button, div, h, label, option, p, section, select, span, textarea } from "../html.ts";
import { Action, block, Field, showMessage, useAnswer, when } from "../parts/basics.ts";
import { diff } from "../parts/diff.ts";
import { Diff, pretty } from "../parts/diff-view.ts";
import { ago, plural } from "../parts/format.ts";
import { call, isReadOnly, session } from "../session.ts";
import type { TabProps } from "./machine-tab.ts";

interface Version {
  version: string;
  created_at: string;
  user_config: Record<string, unknown>;
}

/** The current config, a diff between two versions, and an editor. */
export function ConfigTab(props: TabProps): VNode {
  const { machine, app_name, turn } = props;
  const [editing, setEditing] = useState(false);
  const readOnly = isReadOnly(useCell(session));
  const answer = useAnswer(
    (signal) =>
      call("GET /v1/apps/:app_name/machines/:machine_id/versions", {
        params: { app_name, machine_id: machine.id },
        signal,
      }),
    [machine.id, turn],
  );
  if (editing) return h(Editor, { ...props, close: () => setEditing(false) });
  return section(
    { "aria-label": "Config" },
    readOnly ? null : p(button({ type: "button", onClick: () => setEditing(true) }, "Change the config")),
    when(answer, (versions) => (versions.length < 2 ? block(pretty(machine.config)) : h(Compare, { versions }))),
  );
}

function Compare({ versions }: { versions: readonly Version[] }): VNode {
  const [from, setFrom] = useState(1);
  const [until, setUntil] = useState(0);
  const before = versions[from];
  const after = versions[until];
  const choice = (name: string, value: number, set: (n: number) => void): VNode =>
    label(
      { class: "inline" },
      span(name),
      select(
        { value: String(value), onChange: (event) => set(Number(event.currentTarget.value)) },
        ...versions.map(({ version, created_at }, index) =>
          option(
            { key: version, value: String(index) },
            `${index === 0 ? "now" : `${index} before`} · ${version.slice(-8)} · ${ago(Date.parse(created_at), Date.now())}`,
          ),
        ),
      ),
    );
  const lines = before && after ? diff(pretty(before.user_config), pretty(after.user_config)) : [];
  const changed = lines.filter(({ kind }) => kind !== "same").length;
  return div(
    div(
      { class: "filters" },
      choice("From", from, setFrom),
      choice("to", until, setUntil),
      span({ class: "dim" }, changed === 0 ? "nothing changed" : `${plural(changed, "line")} changed`),
    ),
    h(Diff, { lines }),
  );
}

function Editor({ machine, app_name, close }: TabProps & { close: () => void }): VNode {
  const before = pretty(machine.config);
  const [text, setText] = useState(before);
  const save = async (): Promise<void> => {
    const config = JSON.parse(text) as { image: string };
    await call("POST /v1/apps/:app_name/machines/:machine_id", {
      params: { app_name, machine_id: machine.id },
      body: { config, current_version: machine.instance_id } as never,
    });
    showMessage("It has a new version and boots with it.");
    close();
  };
  return section(
    { "aria-label": "Change the config" },
    h(Field, {
      name: "Config",
      hint: "The whole config. Saving creates a new version, and the machine restarts with it.",
      children: (id) =>
        textarea({
          id,
          class: "code",
          rows: 24,
          spellcheck: false,
          value: text,
          onInput: (event) => setText(event.currentTarget.value),
        }),
    }),
    text === before ? null : h(Diff, { lines: diff(before, text) }),
    div(
      { class: "actions" },
      h(Action, { name: "Save and restart", class: "primary", disabled: text === before, work: save }),
      button({ type: "button", onClick: close }, "Cancel"),
    ),
  );
}
