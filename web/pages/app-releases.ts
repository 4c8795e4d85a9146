import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { button, code, div, h, p, pre } from "../html.ts";
import { Action, Ago, badge, card, empty, sheet, useAnswer, when } from "../parts/basics.ts";
import { useRounds } from "../parts/controls.ts";
import { duration } from "../parts/format.ts";
import { place } from "../router.ts";
import { call, session } from "../session.ts";
import type { AppTabProps } from "./app-tab.ts";

const EVERY_MS = 5000;
/** The end of a build's output that is shown. */
const SHOWN_CHARS = 200_000;

export function AppReleases({ app_name, readOnly }: AppTabProps): VNode {
  return div(card("Releases", h(ReleaseList, { app_name, limit: 50 })), h(Builds, { app_name, readOnly }));
}

export const shortDigest = (digest: string | null): VNode | string =>
  digest === null ? "" : code({ class: "dim", title: digest }, digest.replace("sha256:", "").slice(0, 12));

export function ReleaseList({ app_name, limit }: { app_name: string; limit: number }): VNode {
  const round = useRounds(EVERY_MS);
  const answer = useAnswer(
    (signal) => call("GET /v1/apps/:app_name/releases", { params: { app_name }, query: { limit }, signal }),
    [app_name, limit, round],
  );
  return div(
    when(answer, ({ releases }) =>
      releases.length === 0
        ? p({ class: "dim" }, "No releases yet. Each ", code("hangar deploy"), " makes one that can be rolled back to.")
        : sheet(
            "Releases",
            ["version", "status", "image", "digest", "what", "why", "by", "when"],
            releases.map((release) => ({
              key: String(release.version),
              cells: [
                `v${release.version}`,
                badge(release.status),
                release.image === null ? "" : code(release.image),
                shortDigest(release.image_digest),
                release.description,
                release.failure ?? release.message,
                release.created_by,
                h(Ago, { ms: Date.parse(release.created_at) }),
              ],
            })),
          ),
    ),
  );
}

const ENDED: readonly string[] = ["complete", "failed", "cancelled"];

function Builds({ app_name, readOnly }: { app_name: string; readOnly: boolean }): VNode {
  const [shown, setShown] = useState(() => place.value.query.get("build") ?? undefined);
  const round = useRounds(EVERY_MS);
  const answer = useAnswer(
    (signal) => call("GET /v1/apps/:app_name/builds", { params: { app_name }, query: {}, signal }),
    [app_name, round],
  );
  const cancel = (build_id: string) => async (): Promise<void> => {
    await call("POST /v1/apps/:app_name/builds/:build_id/cancel", { params: { app_name, build_id } });
    answer.again();
  };
  return card(
    "Builds",
    when(answer, ({ builds }) =>
      builds.length === 0
        ? empty(
            "No builds yet.",
            p("In a folder with a Dockerfile, ", code("hangar deploy"), " builds the image here."),
          )
        : sheet(
            "Builds",
            ["state", "build", "image", "digest", "took", "by", "when", "output"],
            builds.map(
              ({ id, state, dockerfile, image, digest, started_at, ended_at, created_by, created_at, error }) => ({
                key: id,
                cells: [
                  badge(state),
                  code({ title: error ?? id }, dockerfile),
                  code(image),
                  shortDigest(digest),
                  started_at && ended_at ? duration(Date.parse(ended_at) - Date.parse(started_at)) : "",
                  created_by,
                  h(Ago, { ms: Date.parse(created_at) }),
                  div(
                    button(
                      {
                        type: "button",
                        "aria-expanded": shown === id,
                        onClick: () => setShown(shown === id ? undefined : id),
                      },
                      shown === id ? "Hide" : "Show",
                    ),
                    readOnly || ENDED.includes(state) ? null : h(Action, { name: "Cancel", work: cancel(id) }),
                  ),
                ],
              }),
            ),
          ),
    ),
    shown === undefined ? null : h(BuildLog, { app_name, build_id: shown, key: shown }),
  );
}

/** The output of a build, live until it ends. */
function BuildLog({ app_name, build_id }: { app_name: string; build_id: string }): VNode {
  const [text, setText] = useState("");
  const element = useRef<HTMLPreElement>(null);
  useEffect(() => {
    const ending = new AbortController();
    const follow = async (): Promise<void> => {
      const stream = session.value?.client.stream<"GET /v1/apps/:app_name/builds/:build_id/logs", { text?: string }>(
        "GET /v1/apps/:app_name/builds/:build_id/logs",
        { params: { app_name, build_id }, query: { follow: true }, signal: ending.signal },
      );
      for await (const piece of stream ?? [])
        if (piece.text) setText((before) => (before + (piece.text ?? "")).slice(-SHOWN_CHARS));
    };
    follow().catch((thrown: unknown) => {
      if (!ending.signal.aborted) setText((before) => `${before}\n${String(thrown)}`);
    });
    return () => ending.abort();
  }, [app_name, build_id]);
  useEffect(() => {
    if (element.current) element.current.scrollTop = element.current.scrollHeight;
  }, [text]);
  return pre(
    { class: "log", ref: element, tabIndex: 0, role: "log", "aria-label": "Output of the build" },
    text || "…",
  );
}
