/** Whether the app has previews, how long they stay, and what they get of it. */
import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { div, form, h, input, label, span } from "../html.ts";
import { Action, card, showMessage, type useAnswer, when } from "../parts/basics.ts";
import { textField } from "../parts/controls.ts";
import { RequestView, requestTexts } from "../parts/request.ts";
import { call } from "../session.ts";
import type { AppStatus } from "./app-tab.ts";

export const readSettings = (app_name: string, signal: AbortSignal) =>
  call("GET /v1/apps/:app_name/previews/settings", { params: { app_name }, signal });

export type Settings = Awaited<ReturnType<typeof readSettings>>;

const CHANGE = "PUT /v1/apps/:app_name/previews/settings";

interface Props {
  app_name: string;
  refusal: string | undefined;
  settings: ReturnType<typeof useAnswer<Settings>>;
  status: AppStatus | undefined;
}

export function PreviewSettings({ app_name, refusal, settings }: Props): VNode {
  return card(
    "Settings of previews",
    when(settings, (now) => h(SettingsForm, { app_name, refusal, now, onSaved: settings.again })),
  );
}

interface FormProps {
  app_name: string;
  refusal: string | undefined;
  now: Settings;
  onSaved: () => void;
}

function SettingsForm({ app_name, refusal, now, onSaved }: FormProps): VNode {
  const [draft, setDraft] = useState(draftOf(now));
  const saved = JSON.stringify(now);
  useEffect(() => setDraft(draftOf(now)), [saved]);
  const body = bodyOf(draft);
  const save = async (): Promise<void> => {
    await call(CHANGE, { params: { app_name }, body });
    showMessage(body.enabled ? "Saved. Pushes of branches make previews." : "Saved. Previews are off.");
    onSaved();
  };
  const secrets = body.secrets.map((name) => ` --secret ${name}`).join("") || " --no-secrets";
  const hangar = `hangar previews settings ${body.enabled ? "on" : "off"} --days ${body.days} --most ${body.most}${secrets} --app ${app_name}`;
  return form(
    { onSubmit: (event) => event.preventDefault() },
    label(
      { class: "check" },
      input({
        type: "checkbox",
        checked: draft.enabled,
        onChange: (event) => setDraft({ ...draft, enabled: event.currentTarget.checked }),
      }),
      span("Pushes of other branches than the deploy branch make previews"),
    ),
    div(
      { class: "row-form" },
      textField("Days without a push", draft.days, (days) => setDraft({ ...draft, days }), {
        type: "number",
        class: "short",
        min: 1,
      }),
      textField("At most", draft.most, (most) => setDraft({ ...draft, most }), {
        type: "number",
        class: "short",
        min: 1,
      }),
      textField("Secrets", draft.secrets, (text) => setDraft({ ...draft, secrets: text }), {
        hint: "Names of the app's secrets that every branch's author may read.",
        placeholder: "STRIPE_TEST_KEY",
        spellcheck: false,
      }),
      h(Action, {
        name: "Save",
        class: "primary",
        disabled: refusal !== undefined || JSON.stringify({ ...now, ...body }) === saved,
        ...(refusal ? { title: refusal } : {}),
        work: save,
      }),
    ),
    h(RequestView, { texts: requestTexts(CHANGE, { params: { app_name }, body, hangar }) }),
  );
}

const draftOf = ({ enabled, days, most, secrets }: Settings) => ({
  enabled,
  days: String(days),
  most: String(most),
  secrets: secrets.join(" "),
});

const bodyOf = ({ enabled, days, most, secrets }: ReturnType<typeof draftOf>) => ({
  enabled,
  days: Number(days),
  most: Number(most),
  secrets: secrets.split(/[\s,]+/).filter(Boolean),
});
