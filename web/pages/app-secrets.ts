import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { code, form, h, input, p } from "../html.ts";
import { Action, Ago, card, Field, sheet, showMessage, when } from "../parts/basics.ts";
import { useShared } from "../parts/controls.ts";
import { confirmed } from "../parts/dialog.ts";
import { call } from "../session.ts";
import type { AppTabProps } from "./app-tab.ts";

export function Secrets({ app_name, readOnly }: AppTabProps): VNode {
  const answer = useShared(
    (signal) => call("GET /v1/apps/:app_name/secrets", { params: { app_name }, signal }),
    [app_name],
  );
  const remove = (secret_name: string) => async (): Promise<void> => {
    if (!(await confirmed(`Remove ${secret_name}?`, "Machines that start from now on do not have it.", "Remove it")))
      return;
    await call("DELETE /v1/apps/:app_name/secrets/:secret_name", { params: { app_name, secret_name } });
    answer.again();
  };
  return card(
    "Secrets",
    p({ class: "dim" }, "Machines get them as environment variables when they start. Their values are never shown."),
    readOnly ? null : h(NewSecret, { app_name, onSet: answer.again }),
    when(answer, ({ secrets }) =>
      secrets.length === 0
        ? p({ class: "dim" }, "None yet. ", code(`hangar secrets set NAME=value --app ${app_name}`))
        : sheet(
            "Secrets",
            ["name", "digest", "changed", ...(readOnly ? [] : ["remove"])],
            secrets.map(({ name, digest, updated_at }) => ({
              key: name,
              cells: [
                code(name),
                code({ class: "dim" }, digest.slice(0, 16)),
                h(Ago, { ms: Date.parse(updated_at) }),
                ...(readOnly ? [] : [h(Action, { name: "Remove", work: remove(name) })]),
              ],
            })),
          ),
    ),
  );
}

function NewSecret({ app_name, onSet }: { app_name: string; onSet: () => void }): VNode {
  const [name, setName] = useState("");
  const [value, setValue] = useState("");
  const set = async (): Promise<void> => {
    await call("POST /v1/apps/:app_name/secrets", { params: { app_name }, body: { values: { [name]: value } } });
    setName("");
    setValue("");
    showMessage("Set. Machines have it after their next start.");
    onSet();
  };
  return form(
    { class: "row-form", onSubmit: (event) => event.preventDefault() },
    h(Field, {
      name: "Name",
      children: (id) =>
        input({
          id,
          type: "text",
          placeholder: "DATABASE_URL",
          autocomplete: "off",
          value: name,
          onInput: (event) => setName(event.currentTarget.value),
        }),
    }),
    h(Field, {
      name: "Value",
      children: (id) =>
        input({
          id,
          type: "password",
          autocomplete: "off",
          value,
          onInput: (event) => setValue(event.currentTarget.value),
        }),
    }),
    h(Action, { name: "Set", class: "primary", disabled: name === "" || value === "", work: set }),
  );
}
