import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { datalist, div, fieldset, h, input, label, legend, option, select } from "../html.ts";
import { Field, useAnswer } from "../parts/basics.ts";
import { textField } from "../parts/controls.ts";
import { ago } from "../parts/format.ts";
import { call, org } from "../session.ts";
import type { ActionDialogProps } from "./app-actions-props.ts";
import { type Deploying, DeploymentDialog, type FieldErrors } from "./app-deployment.ts";
import { useMachines } from "./app-tab.ts";

const STRATEGIES = [
  ["", "as the release before"],
  ["rolling", "rolling: some machines after the others"],
  ["canary", "canary: one more machine first"],
  ["bluegreen", "blue-green: new machines beside the old ones"],
  ["immediate", "immediate: all at once, without waiting"],
] as const;

interface Draft {
  image: string;
  port: string;
  strategy: string;
  message: string;
}

/** Another image for the app: by name, by digest, or its newest build. */
export function DeployDialog({ app_name, status, onClose }: ActionDialogProps): VNode {
  const [draft, setDraft] = useState<Draft>({ image: "", port: "8080", strategy: "", message: "" });
  const set = (change: Partial<Draft>): void => setDraft({ ...draft, ...change });
  const before = status.release;
  // The machines of an app without a release become those of its first one, with their services.
  const is_new = useMachines(app_name).length === 0 && before === null;
  return h(DeploymentDialog, {
    title: `Deploy ${app_name}`,
    app_name,
    onClose,
    body: bodyOf(draft, is_new),
    undo: before
      ? { title: `Roll back to v${before.version}`, body: { action: "rollback", version: before.version } }
      : undefined,
    form: (errors) => h(Fields, { app_name, draft, set, errors, is_new }),
  });
}

function bodyOf({ image, port, strategy, message }: Draft, is_new: boolean): Deploying | undefined {
  if (image.trim() === "") return undefined;
  return {
    action: "deploy",
    image: image.trim(),
    ...(is_new && port !== "" ? { port: Number(port) } : {}),
    ...(strategy ? { strategy } : {}),
    ...(message.trim() ? { message: message.trim() } : {}),
  };
}

interface FieldsProps {
  app_name: string;
  draft: Draft;
  set: (change: Partial<Draft>) => void;
  errors: FieldErrors;
  is_new: boolean;
}

function Fields({ app_name, draft, set, errors, is_new }: FieldsProps): VNode {
  const images = useAnswer((signal) => call("GET /v1/images", { query: { org_slug: org() }, signal }), []).value;
  const names = [...new Set((images?.images ?? []).map(({ name }) => name))];
  return div(
    h(NewestBuild, { app_name, image: draft.image, choose: (image) => set({ image }) }),
    textField("Image", draft.image, (image) => set({ image }), {
      hint: "A name such as nginx:1.27, one with a digest (nginx@sha256:…), or an image of this platform.",
      error: errors["body.image"],
      list: "images-known",
      placeholder: "hangar/hello",
      spellcheck: false,
    }),
    datalist({ id: "images-known" }, ...names.map((name) => option({ key: name, value: name }))),
    is_new
      ? textField("Port", draft.port, (port) => set({ port }), {
          hint: "The port its server listens on. Empty: no service.",
          error: errors["body.port"],
          type: "number",
          class: "short",
        })
      : h(Field, {
          name: "Strategy",
          error: errors["body.strategy"],
          children: (id) =>
            select(
              { id, value: draft.strategy, onChange: (event) => set({ strategy: event.currentTarget.value }) },
              ...STRATEGIES.map(([value, name]) => option({ key: value, value }, name)),
            ),
        }),
    textField("Why", draft.message, (message) => set({ message }), {
      hint: "For people who read the releases. May stay empty.",
      error: errors["body.message"],
    }),
  );
}

/** One click for what most people want: the image that was built last. */
function NewestBuild(props: { app_name: string; image: string; choose: (image: string) => void }): VNode | null {
  const { app_name, image, choose } = props;
  const answer = useAnswer(
    (signal) => call("GET /v1/apps/:app_name/builds", { params: { app_name }, query: {}, signal }),
    [app_name],
  );
  const newest = answer.value?.builds.find(({ digest }) => digest !== null);
  if (!newest) return null;
  const value = `${newest.image.split("@")[0]}@${newest.digest}`;
  const built = `${newest.digest?.replace("sha256:", "").slice(0, 12)}, ${ago(Date.parse(newest.created_at), Date.now())} by ${newest.created_by}`;
  return fieldset(
    { class: "plain-set" },
    legend("What to deploy"),
    label(
      { class: "check" },
      input({ type: "radio", name: "what", checked: image === value, onChange: () => choose(value) }),
      `The newest build (${built})`,
    ),
    label(
      { class: "check" },
      input({ type: "radio", name: "what", checked: image !== value, onChange: () => choose("") }),
      "An image by name",
    ),
  );
}
