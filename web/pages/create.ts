import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useAppNames } from "../fleet-apps.ts";
import {
  a,
  code,
  datalist,
  div,
  fieldset,
  form,
  h,
  input,
  legend,
  nav,
  option,
  p,
  section,
  select,
  textarea,
} from "../html.ts";
import { Action, block, Field, pageHead, problem, showMessage, useAnswer } from "../parts/basics.ts";
import { choices, named } from "../parts/controls.ts";
import { go, to } from "../router.ts";
import { call, org } from "../session.ts";
import { bodyOf, curlOf, type Draft, EMPTY, scriptOf, shellOf } from "./create-draft.ts";

const SIZES = ["shared-cpu-1x", "shared-cpu-2x", "shared-cpu-4x", "performance-1x", "performance-2x"];

/** A form for common options beside the request that it sends, which can be copied or edited. */
export function CreateMachine({ app }: { app: string }): VNode {
  const [draft, setDraft] = useState<Draft>({ ...EMPTY, app });
  const [edited, setEdited] = useState<string | undefined>();
  const [error, setError] = useState<unknown>();
  const json = edited ?? JSON.stringify(bodyOf(draft), null, 2);
  const set = (change: Partial<Draft>): void => {
    setDraft({ ...draft, ...change });
    setEdited(undefined);
  };
  const make = async (): Promise<void> => {
    setError(undefined);
    await create(draft.app.trim(), json).catch((thrown: unknown) => setError(thrown));
  };
  return div(
    nav({ class: "crumbs", "aria-label": "Above" }, a({ href: to("machines") }, "Machines")),
    pageHead("New machine"),
    div(
      { class: "columns create" },
      form(
        { onSubmit: (event) => event.preventDefault() },
        h(Basics, { draft, set }),
        h(More, { draft, set }),
        error === undefined ? null : problem(error),
        div(
          { class: "actions" },
          h(Action, { name: "Create machine", class: "primary", disabled: draft.app.trim() === "", work: make }),
          a({ class: "button", href: to("machines") }, "Cancel"),
        ),
      ),
      h(Preview, { draft, json, edited: edited !== undefined, setEdited }),
    ),
  );
}

/** Creates the app if it does not exist, so that a first machine takes one click. */
async function create(app_name: string, json: string): Promise<void> {
  const body = JSON.parse(json) as { config: { image: string } };
  const { apps } = await call("GET /v1/apps", { query: { org_slug: org() } });
  if (!apps.some(({ name }) => name === app_name)) {
    await call("POST /v1/apps", { body: { app_name, org_slug: org() } });
  }
  const machine = await call("POST /v1/apps/:app_name/machines", {
    params: { app_name },
    body,
    idempotency_key: crypto.randomUUID(),
  });
  if (machine.config["services"]) await openUp(app_name);
  showMessage(`Created machine ${machine.name}.`);
  go("machines", app_name, machine.id);
}

/** An app without an address is closed, so publishing a port allocates one. */
async function openUp(app_name: string): Promise<void> {
  const params = { app_name };
  const { ips } = await call("GET /v1/apps/:app_name/ip_assignments", { params });
  if (ips.length === 0) await call("POST /v1/apps/:app_name/ip_assignments", { params, body: { type: "shared_v4" } });
}

interface Part {
  draft: Draft;
  set: (change: Partial<Draft>) => void;
}

function Basics({ draft, set }: Part): VNode {
  const apps = useAppNames();
  const regions = useAnswer((signal) => call("GET /v1/platform/regions", { signal }), []);
  const text = (name: string, key: "image" | "name" | "app", hint: string, placeholder: string): VNode =>
    h(Field, {
      name,
      hint,
      children: (id) =>
        input({
          id,
          type: "text",
          autocomplete: "off",
          placeholder,
          list: key === "app" ? "apps" : undefined,
          value: draft[key],
          onInput: (event) => set({ [key]: event.currentTarget.value }),
        }),
    });
  return fieldset(
    legend("What to run"),
    text("App", "app", "Created if it does not exist.", "hello"),
    datalist({ id: "apps" }, ...apps.map((name) => option({ key: name, value: name }))),
    text("Image", "image", "A registry reference, or an image that was imported.", "hangar/hello"),
    text("Name", "name", "Generated when left empty.", "web-1"),
    h(Field, {
      name: "Region",
      children: (id) =>
        select(
          { id, value: draft.region, onChange: (event) => set({ region: event.currentTarget.value }) },
          option({ value: "" }, "nearest"),
          ...(regions.value?.regions ?? []).map(({ code: value, name }) =>
            option({ key: value, value }, `${value} · ${name}`),
          ),
        ),
    }),
    h(Field, {
      name: "Size",
      children: (id) =>
        select(
          { id, value: draft.size, onChange: (event) => set({ size: event.currentTarget.value }) },
          option({ value: "" }, "the smallest"),
          ...SIZES.map((value) => option({ key: value, value }, value)),
        ),
    }),
  );
}

function More({ draft, set }: Part): VNode {
  return fieldset(
    legend("How it runs"),
    h(Field, {
      name: "Port",
      hint: "The port its server listens on; requests to the app go there. Empty: no service.",
      children: (id) =>
        input({
          id,
          type: "number",
          class: "short",
          min: 1,
          max: 65_535,
          value: draft.port,
          onInput: (event) => set({ port: event.currentTarget.value }),
        }),
    }),
    h(Field, {
      name: "When idle",
      children: (id) =>
        select(
          {
            id,
            value: draft.autostop,
            disabled: draft.port === "",
            onChange: (event) => set({ autostop: event.currentTarget.value }),
          },
          option({ value: "off" }, "keep running"),
          option({ value: "suspend" }, "suspend; the next request wakes it"),
          option({ value: "stop" }, "stop; the next request starts it"),
        ),
    }),
    h(Field, {
      name: "Restart policy",
      children: (id) =>
        select(
          { id, value: draft.restart, onChange: (event) => set({ restart: event.currentTarget.value }) },
          option({ value: "" }, "default (on failure)"),
          option({ value: "on-failure" }, "on failure"),
          option({ value: "always" }, "always"),
          option({ value: "no" }, "never"),
        ),
    }),
    h(Field, {
      name: "Environment",
      hint: "NAME=value, one per line. Put secret values into the app's secrets.",
      children: (id) =>
        textarea({
          id,
          class: "code",
          rows: 3,
          spellcheck: false,
          value: draft.env,
          onInput: (event) => set({ env: event.currentTarget.value }),
        }),
    }),
    h(Field, {
      name: "Command",
      hint: "Instead of the image's own.",
      children: (id) =>
        input({
          id,
          type: "text",
          autocomplete: "off",
          spellcheck: false,
          placeholder: "node server.js",
          value: draft.command,
          onInput: (event) => set({ command: event.currentTarget.value }),
        }),
    }),
  );
}

const VIEWS = ["JSON", "curl", "hangar", "TypeScript"] as const;

function Preview(props: { draft: Draft; json: string; edited: boolean; setEdited: (json: string) => void }): VNode {
  const { draft, json, edited, setEdited } = props;
  const [view, setView] = useState<(typeof VIEWS)[number]>("JSON");
  const texts = { curl: curlOf(draft, json), hangar: shellOf(draft), TypeScript: scriptOf(draft, json) };
  return section(
    { class: "preview", "aria-label": "The request" },
    choices({ class: "chips", label: "Show the request as" }, named(VIEWS), view, setView),
    view === "JSON"
      ? textarea({
          class: "code",
          "aria-label": "Body of the request",
          rows: 26,
          spellcheck: false,
          value: json,
          onInput: (event) => setEdited(event.currentTarget.value),
        })
      : block(texts[view]),
    p(
      { class: "dim" },
      edited
        ? "Edited: this JSON will be sent. Changing the form replaces it."
        : "The request that will be sent. Any field of the API can be added here; ",
      edited ? null : a({ href: "/docs#machines", target: "_blank", rel: "noopener" }, "the fields"),
      edited ? null : ".",
    ),
    code({ class: "dim" }, `POST /v1/apps/${draft.app || "…"}/machines`),
  );
}
