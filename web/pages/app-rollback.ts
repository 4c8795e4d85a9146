import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { code, div, fieldset, h, input, label, legend, p, span } from "../html.ts";
import { Ago, useAnswer, when } from "../parts/basics.ts";
import { changes, Diff } from "../parts/diff-view.ts";
import { call } from "../session.ts";
import type { ActionDialogProps } from "./app-actions-props.ts";
import { DeploymentDialog } from "./app-deployment.ts";

const SCALE = "scale ";
const LISTED = 50;

/** An earlier release again: which one, and what changes with it. */
export function RollbackDialog({ app_name, status, onClose }: ActionDialogProps): VNode {
  const current = status.release?.version ?? 0;
  const [chosen, setChosen] = useState<number>();
  const answer = useAnswer(
    async (signal) => {
      const query = { limit: LISTED };
      const { releases } = await call("GET /v1/apps/:app_name/releases", { params: { app_name }, query, signal });
      return releases.filter(
        ({ version, status: ended, description }) =>
          version !== current && ended === "complete" && !description.startsWith(SCALE),
      );
    },
    // Another release may be the current one by now.
    [app_name, current],
  );
  const version = chosen ?? answer.value?.find((release) => release.version < current)?.version;
  return h(DeploymentDialog, {
    title: `Roll back ${app_name}`,
    app_name,
    onClose,
    body: version === undefined ? undefined : { action: "rollback", version },
    undo: { title: `Back to v${current}`, body: { action: "rollback", version: current } },
    form: () =>
      div(
        when(answer, (releases) =>
          releases.length === 0
            ? p({ class: "dim" }, `Release v${current} is the only complete one: there is nothing to roll back to.`)
            : fieldset(
                { class: "choose-release" },
                legend(`v${current} runs. Roll back to`),
                ...releases.map((release) =>
                  label(
                    { class: "check", key: release.version },
                    input({
                      type: "radio",
                      name: "release",
                      checked: release.version === version,
                      onChange: () => setChosen(release.version),
                    }),
                    span(
                      `v${release.version} `,
                      code(release.image ?? ""),
                      " ",
                      code({ class: "dim" }, release.image_digest?.replace("sha256:", "").slice(0, 12) ?? ""),
                      " ",
                      span(
                        { class: "dim" },
                        release.message || release.description,
                        ", ",
                        h(Ago, { ms: Date.parse(release.created_at) }),
                      ),
                    ),
                  ),
                ),
              ),
        ),
        version === undefined ? null : h(Differences, { app_name, from: current, to: version }),
      ),
  });
}

function Differences({ app_name, from, to }: { app_name: string; from: number; to: number }): VNode {
  const definition = async (version: number, signal: AbortSignal): Promise<unknown> => {
    const params = { app_name, version: String(version) };
    return (await call("GET /v1/apps/:app_name/releases/:version", { params, signal })).definition;
  };
  const answer = useAnswer(
    async (signal) => changes(await definition(from, signal), await definition(to, signal)),
    [app_name, from, to],
  );
  return div(
    when(answer, (lines) =>
      lines.length === 0 ? p({ class: "dim" }, "Image and config are the same.") : h(Diff, { lines }),
    ),
  );
}
