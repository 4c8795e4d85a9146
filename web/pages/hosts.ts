import type { VNode } from "preact";
import { useCell } from "../cell.ts";
import { fleet } from "../fleet.ts";
import { code, div, h, p } from "../html.ts";
import { Action, badge, card, pageHead, sheet, useAnswer, when } from "../parts/basics.ts";
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
  const buttons = ({ id, state }: { id: string; state: string }): VNode =>
    state === "failed"
      ? h(Action, { name: "Take back", work: act("recover", id) })
      : h(Action, { name: "Take for failed", class: "danger", work: act("fail", id) });
  return div(
    pageHead("Hosts"),
    when(answer, ({ hosts }) =>
      sheet(
        "Hosts",
        ["host", "region", "zone", "state", "CPUs", "memory", ...(full ? ["actions"] : [])],
        hosts.map((host) => ({
          key: host.id,
          cells: [
            code(host.id),
            host.region,
            host.zone,
            badge(host.state),
            share(host.used_cpus, host.cpus, figure, "CPUs"),
            share(host.used_memory_mb, host.memory_mb, megabytes, "memory"),
            ...(full ? [buttons(host)] : []),
          ],
        })),
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
