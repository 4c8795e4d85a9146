import type { VNode } from "preact";
import { a, code, div, h, nav, p, span } from "../html.ts";
import { Ago, block, card, sheet, useAnswer, when } from "../parts/basics.ts";
import { useShared } from "../parts/controls.ts";
import { figure } from "../parts/format.ts";
import { to } from "../router.ts";
import { call, org } from "../session.ts";

const SHOWN = 1000;

/** The rule files, or one of them. They are changed with `hangar alerts apply`, or come with an app. */
export function RuleFiles({ file }: { file: string | undefined }): VNode {
  return file === undefined ? h(List, {}) : h(RuleFile, { file, key: file });
}

function List(): VNode {
  const answer = useShared(
    (signal) =>
      call("GET /v1/orgs/:org_slug/alerts/rules", { params: { org_slug: org() }, query: { limit: SHOWN }, signal }),
    [org()],
  );
  return div(
    p(
      { class: "lead dim" },
      "Recording and alerting rules in Prometheus' format. A file of your own: ",
      code("hangar alerts apply rules.yml"),
    ),
    when(answer, ({ rule_files }) =>
      sheet(
        "Rule files",
        ["file", "of", "rules", "language", "changed"],
        rule_files.map(({ name, app_name, built_in, rules, dialect, updated_at }) => ({
          key: name,
          cells: [
            a({ href: to("alerts", "rules", name) }, name),
            app_name ? a({ href: to("apps", app_name) }, app_name) : built_in ? "the platform" : "the organization",
            figure(rules),
            dialect === "promql" ? "PromQL" : "MetricsQL",
            updated_at ? h(Ago, { ms: Date.parse(updated_at) }) : "–",
          ],
        })),
      ),
    ),
  );
}

function RuleFile({ file }: { file: string }): VNode {
  const answer = useAnswer(
    (signal) =>
      call("GET /v1/orgs/:org_slug/alerts/rules/:rule_file", {
        params: { org_slug: org(), rule_file: file },
        signal,
      }),
    [org(), file],
  );
  return div(
    nav({ class: "crumbs", "aria-label": "Above" }, a({ href: to("alerts", "rules") }, "Rule files")),
    card(
      file,
      when(answer, ({ content, built_in }) =>
        div(
          built_in
            ? p(span({ class: "dim" }, "These come with the platform; a file of this name replaces them."))
            : null,
          block(content),
        ),
      ),
    ),
  );
}
