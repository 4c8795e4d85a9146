/** Branches of the app that are deployed as apps of their own: what there is, when it goes, and one more. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useRefusal } from "../allowed.ts";
import { a, button, code, div, h, p, span } from "../html.ts";
import { Action, Ago, badge, card, empty, sheet, useAnswer, when } from "../parts/basics.ts";
import { textField, useRounds } from "../parts/controls.ts";
import { confirmed } from "../parts/dialog.ts";
import { duration } from "../parts/format.ts";
import { RequestView, requestTexts } from "../parts/request.ts";
import { to } from "../router.ts";
import { call } from "../session.ts";
import { type Deploying, DeploymentDialog, type FieldErrors } from "./app-deployment.ts";
import { PreviewSettings, readSettings, type Settings } from "./app-preview-settings.ts";
import type { AppStatus, AppTabProps } from "./app-tab.ts";

const EVERY_MS = 5000;
const COMMIT_CHARS = 7;
const REMOVE = "DELETE /v1/apps/:app_name/previews/:preview_name";

const readPreviews = (app_name: string, signal: AbortSignal) =>
  call("GET /v1/apps/:app_name/previews", { params: { app_name }, signal });
type Preview = Awaited<ReturnType<typeof readPreviews>>["previews"][number];

export function AppPreviews({ app_name, status }: AppTabProps): VNode {
  const refusal = useRefusal(app_name);
  const round = useRounds(EVERY_MS);
  const [making, setMaking] = useState(false);
  const settings = useAnswer((signal) => readSettings(app_name, signal), [app_name]);
  const answer = useAnswer((signal) => readPreviews(app_name, signal), [app_name, round]);
  const is_on = settings.value?.enabled === true;
  const why_not = refusal ?? (is_on ? undefined : "Previews are off: switch them on below");
  return div(
    card(
      "Previews",
      p(
        { class: "dim" },
        "Each is an app of its own, for a branch: with its own address, machines and logs. It suspends when nobody uses it.",
      ),
      div(
        { class: "actions" },
        button(
          {
            type: "button",
            class: "primary",
            disabled: why_not !== undefined,
            ...(why_not ? { title: why_not } : {}),
            onClick: () => setMaking(true),
          },
          "New preview",
        ),
      ),
      when(answer, ({ previews }) =>
        previews.length === 0
          ? empty(
              "No previews.",
              p(
                "A push of any other branch than the deploy branch makes one, and so does ",
                code("hangar deploy --preview"),
              ),
            )
          : sheet(
              "Previews",
              ["branch", "state", "URL", "commit", "pushed", "deleted", "delete"],
              previews.map((preview) => row(app_name, preview, refusal, answer.again)),
            ),
      ),
    ),
    h(PreviewSettings, { app_name, refusal, settings, status }),
    making
      ? h(NewPreview, {
          app_name,
          status,
          settings: settings.value,
          onClose: () => {
            setMaking(false);
            answer.again();
          },
        })
      : null,
  );
}

function row(app_name: string, preview: Preview, refusal: string | undefined, again: () => void) {
  const { branch, state, urls, git_commit, pushed_at, expires_at } = preview;
  const [url] = urls;
  return {
    key: branch,
    cells: [
      a({ href: to("apps", preview.app_name), title: preview.app_name }, branch),
      badge(state),
      url === undefined
        ? span({ class: "dim" }, "not public")
        : a({ class: "long", href: url, target: "_blank", rel: "noopener" }, url.replace(/^https?:\/\//, "")),
      git_commit === null
        ? span({ class: "dim" }, "–")
        : code({ title: git_commit }, git_commit.slice(0, COMMIT_CHARS)),
      h(Ago, { ms: Date.parse(pushed_at) }),
      span({ title: expires_at }, state === "deleting" ? "now" : `in ${left(expires_at)}`),
      h(Action, {
        name: "Delete",
        disabled: refusal !== undefined || state === "deleting",
        ...(refusal ? { title: refusal } : {}),
        work: () => remove(app_name, preview).then(again),
      }),
    ],
  };
}

const left = (expires_at: string): string => duration(Math.max(0, Date.parse(expires_at) - Date.now()));

async function remove(app_name: string, { app_name: preview_name, branch }: Preview): Promise<void> {
  const params = { app_name, preview_name };
  const texts = requestTexts(REMOVE, { params, hangar: `hangar previews delete ${branch} --app ${app_name}` });
  const text = div(
    p(
      `Its machines, volumes, images and secrets go with it. The branch ${branch} stays in its repository: the next push makes the preview again.`,
    ),
    h(RequestView, { texts }),
  );
  if (await confirmed(`Delete the preview of ${branch}?`, text, "Delete it")) await call(REMOVE, { params });
}

interface NewProps {
  app_name: string;
  status: AppStatus | undefined;
  settings: Settings | undefined;
  onClose: () => void;
}

/** The branch's app: as the app's newest release, with an image of one's choice. */
function NewPreview({ app_name, status, settings, onClose }: NewProps): VNode {
  const [branch, setBranch] = useState("");
  const [image, setImage] = useState(status?.release?.image ?? "");
  const is_complete = branch.trim() !== "" && image.trim() !== "";
  const body: Deploying = { action: "deploy", image: image.trim(), preview: branch.trim() };
  return h(DeploymentDialog, {
    title: `Deploy a preview of ${app_name}`,
    app_name,
    onClose,
    body: is_complete ? body : undefined,
    form: (errors) =>
      div(fields({ branch, setBranch, image, setImage }, errors), p({ class: "dim" }, given(app_name, settings))),
  });
}

interface Draft {
  branch: string;
  setBranch: (text: string) => void;
  image: string;
  setImage: (text: string) => void;
}

function fields({ branch, setBranch, image, setImage }: Draft, errors: FieldErrors): VNode {
  return div(
    textField("Branch", branch, setBranch, {
      hint: "It need not exist in a repository.",
      error: errors["body.preview"] ?? errors["body.branch"],
      placeholder: "feature/basket",
      spellcheck: false,
    }),
    textField("Image", image, setImage, {
      hint: "What this branch runs.",
      error: errors["body.image"],
      spellcheck: false,
    }),
  );
}

function given(app_name: string, settings: Settings | undefined): string {
  if (!settings) return "";
  const { days, secrets } = settings;
  const which = secrets.length === 0 ? "no secrets" : `the secrets ${secrets.join(", ")}`;
  return `It gets ${which} of ${app_name}, and is deleted ${days} days after its last deploy.`;
}
