import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { button, code, div, form, h, h2, p, span, textarea } from "../html.ts";
import { Action, Ago, empty, Field, problem, sheet, showMessage, useAnswer, when } from "../parts/basics.ts";
import { textField, useRounds } from "../parts/controls.ts";
import { Dialog } from "../parts/dialog.ts";
import { exactTime } from "../parts/format.ts";
import { quoted, RequestView, requestTexts } from "../parts/request.ts";
import { call, org } from "../session.ts";

const CREATE = "POST /v1/orgs/:org_slug/alerts/silences";
const EVERY_MS = 10_000;
const SHOWN = 1000;

/** Matchers of exactly these labels, as Alertmanager writes them. */
export const matchersOf = (labels: Record<string, string>): string[] =>
  Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`);

export function Silences({ readOnly }: { readOnly: boolean }): VNode {
  const [making, setMaking] = useState(false);
  const params = { org_slug: org() };
  const round = useRounds(EVERY_MS);
  const answer = useAnswer(
    (signal) => call("GET /v1/orgs/:org_slug/alerts/silences", { params, query: { limit: SHOWN }, signal }),
    [org(), round],
  );
  const end = (silence_id: string) => async (): Promise<void> => {
    await call("DELETE /v1/orgs/:org_slug/alerts/silences/:silence_id", { params: { ...params, silence_id } });
    showMessage("Ended: notifications are sent for these alerts again.");
    answer.again();
  };
  return div(
    p({ class: "lead dim" }, "A silenced alert is still listed, but no notifications are sent."),
    readOnly
      ? null
      : p(
          { class: "lead" },
          button({ type: "button", class: "primary", onClick: () => setMaking(true) }, "New silence"),
        ),
    when(answer, ({ silences }) =>
      silences.length === 0
        ? empty("No silences.", p("Silence an alert in the list, or labels here."))
        : sheet(
            "Silences",
            ["labels", "ends", "comment", "by", ...(readOnly ? [] : ["end"])],
            silences.map(({ id, matchers, starts_at, ends_at, comment, created_by }) => ({
              key: id,
              cells: [
                div(...matchers.map((one) => div({ key: one }, code(one)))),
                exactTime(Date.parse(ends_at)),
                comment || "–",
                span(created_by, " ", h(Ago, { ms: Date.parse(starts_at) })),
                ...(readOnly ? [] : [h(Action, { name: "End now", work: end(id) })]),
              ],
            })),
          ),
    ),
    making ? h(NewSilence, { matchers: [], onClose: () => setMaking(false), onMade: answer.again }) : null,
  );
}

interface NewProps {
  matchers: readonly string[];
  onClose: () => void;
  onMade: () => void;
}

export function NewSilence({ matchers: first, onClose, onMade }: NewProps): VNode {
  const [lines, setLines] = useState(first.join("\n"));
  const [duration, setDuration] = useState("2h");
  const [comment, setComment] = useState("");
  const [error, setError] = useState<unknown>();
  const matchers = lines
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);
  const params = { org_slug: org() };
  const body = { matchers, duration, ...(comment ? { comment } : {}) };
  const silence = async (): Promise<void> => {
    try {
      await call(CREATE, { params, body });
    } catch (thrown) {
      setError(thrown);
      return;
    }
    showMessage(`Silenced for ${duration}.`);
    onClose();
    onMade();
  };
  const words = comment ? ` --comment ${quoted(comment)}` : "";
  const hangar = `hangar alerts silence ${matchers.map(quoted).join(" ")} --for ${duration}${words}`;
  return h(
    Dialog,
    { name: "Silence alerts", onClose, class: "wide" },
    form(
      { class: "stack", onSubmit: (event: Event) => event.preventDefault() },
      h2("Silence alerts"),
      h(Field, {
        name: "Labels",
        hint: 'One per line, such as app="web" or severity=~"page|critical"; alerts that have all of them are silenced.',
        children: (id) =>
          textarea({
            id,
            class: "code",
            rows: 5,
            spellcheck: false,
            value: lines,
            onInput: (event) => setLines(event.currentTarget.value),
          }),
      }),
      textField("For", duration, setDuration, { hint: "Such as 30m, 2h or 1d." }),
      textField("Comment", comment, setComment, { hint: "Why, for the others." }),
      error === undefined ? null : problem(error),
      h(RequestView, { texts: requestTexts(CREATE, { params, body, hangar }) }),
      div(
        { class: "actions end" },
        button({ type: "button", onClick: onClose }, "Cancel"),
        h(Action, { name: "Silence", class: "primary", disabled: matchers.length === 0 || !duration, work: silence }),
      ),
    ),
  );
}
