import type { VNode } from "preact";
import { useCell } from "../cell.ts";
import { fleet } from "../fleet.ts";
import { code, div, h, p, table, tbody, td, th, thead, tr } from "../html.ts";
import { Action, badge, card, pageHead, useAnswer, when } from "../parts/basics.ts";
import { confirmed } from "../parts/dialog.ts";
import { figure, megabytes } from "../parts/format.ts";
import { call, isFull, session } from "../session.ts";
import { share } from "./overview.ts";

/** Where machines run, and how full it is there. */
export function Page(): VNode {
  const full = isFull(useCell(session));
  const { machines } = useCell(fleet);
  const answer = useAnswer((signal) => call("GET /v1/platform/hosts", { signal }), [machines.size]);
  const regions = useAnswer((signal) => call("GET /v1/platform/regions", { signal }), []);
  const act = (route: "fail" | "recover", host_id: string) => async (): Promise<void> => {
    const sure =
      route === "recover" ||
      (await confirmed(
        `Take host ${host_id} for failed?`,
        "Its machines are marked, and those that stand by for them start elsewhere.",
        "Take it for failed",
      ));
    if (!sure) return;
    await call(`POST /v1/platform/hosts/:host_id/${route}`, { params: { host_id } });
    answer.again();
  };
  return div(
    pageHead("Hosts"),
    when(answer, ({ hosts }) =>
      div(
        { class: "table-wrap", tabIndex: 0 },
        table(
          { class: "plain" },
          thead(
            tr(
              ...["host", "region", "zone", "state", "CPUs", "memory", ...(full ? ["actions"] : [])].map((name) =>
                th({ key: name, scope: "col" }, name),
              ),
            ),
          ),
          tbody(
            ...hosts.map((host) =>
              tr(
                { key: host.id },
                td(code(host.id)),
                td(host.region),
                td(host.zone),
                td(badge(host.state)),
                td(share(host.used_cpus, host.cpus, figure, "CPUs")),
                td(share(host.used_memory_mb, host.memory_mb, megabytes, "memory")),
                full
                  ? td(
                      host.state === "failed"
                        ? h(Action, { name: "Take back", work: act("recover", host.id) })
                        : h(Action, { name: "Take for failed", class: "danger", work: act("fail", host.id) }),
                    )
                  : null,
              ),
            ),
          ),
        ),
      ),
    ),
    card(
      "Regions",
      when(regions, ({ regions: found, nearest }) =>
        p(
          ...found.flatMap(({ code: name, name: words }) => [
            code({ key: name }, name),
            ` ${words}${name === nearest ? " (nearest)" : ""}  `,
          ]),
        ),
      ),
      p(
        { class: "dim" },
        "Hosts are declared in the config file, as ",
        code("[[hosts]]"),
        " tables; without any, this box is the only one.",
      ),
    ),
  );
}
