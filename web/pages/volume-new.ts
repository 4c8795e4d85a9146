import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { datalist, form, h, option } from "../html.ts";
import { Action, card, showMessage, useAnswer } from "../parts/basics.ts";
import { textField } from "../parts/controls.ts";
import { call, org } from "../session.ts";

/** A new, empty volume. */
export function NewVolume({ onMade }: { onMade: () => void }): VNode {
  const [app_name, setApp] = useState("");
  const [name, setName] = useState("data");
  const [size, setSize] = useState("1");
  const apps = useAnswer((signal) => call("GET /v1/apps", { query: { org_slug: org() }, signal }), []);
  const make = async (): Promise<void> => {
    const volume = await call("POST /v1/apps/:app_name/volumes", {
      params: { app_name: app_name.trim() },
      body: { name: name.trim(), size_gb: Number(size) },
    });
    showMessage(`Created volume ${volume.name}.`);
    onMade();
  };
  return card(
    "New volume",
    form(
      { class: "row-form", onSubmit: (event) => event.preventDefault() },
      textField("App", app_name, setApp, { list: "volume-apps" }),
      datalist(
        { id: "volume-apps" },
        ...(apps.value?.apps ?? []).map((app) => option({ key: app.id, value: app.name })),
      ),
      textField("Name", name, setName),
      textField("Size, GB", size, setSize, { type: "number", class: "short", min: 1 }),
      h(Action, {
        name: "Create",
        class: "primary",
        disabled: app_name.trim() === "" || name.trim() === "",
        work: make,
      }),
    ),
  );
}
