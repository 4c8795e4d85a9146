import type { VNode } from "preact";
import { useCell } from "../cell.ts";
import { fleet } from "../fleet.ts";
import { a, code, p, span } from "../html.ts";
import { card, sheet, useAnswer } from "../parts/basics.ts";
import { useRounds } from "../parts/controls.ts";
import { clockTime, duration, exactTime } from "../parts/format.ts";
import { to } from "../router.ts";
import { call } from "../session.ts";

const EVERY_MS = 5000;
const SHOWN = 10;

/** Failed and slow requests, each with its machine and the log lines that have its request id; nothing without any. */
export function AppRequests({ app_name }: { app_name: string }): VNode | null {
  const round = useRounds(EVERY_MS);
  const answer = useAnswer(
    (signal) => call("GET /v1/apps/:app_name/requests", { params: { app_name }, signal }),
    [app_name, round],
  );
  const { machines } = useCell(fleet);
  const requests = answer.value?.requests ?? [];
  if (requests.length === 0) return null;
  return card(
    "Slow and failed requests",
    sheet(
      "Slow and failed requests",
      ["time", "request", "status", "duration", "machine", "request id", "trace"],
      requests.slice(0, SHOWN).map((one) => ({
        key: one.request_id,
        cells: [
          span({ title: exactTime(Date.parse(one.at)) }, clockTime(Date.parse(one.at))),
          code(`${one.method} ${one.path}`),
          span(
            { title: one.reason ?? "" },
            one.status === 0 ? "none" : String(one.status),
            one.reason ? ` ${one.reason}` : "",
          ),
          duration(one.duration_ms),
          one.machine_id
            ? a(
                { href: to("machines", app_name, one.machine_id) },
                machines.get(one.machine_id)?.name ?? one.machine_id,
              )
            : "none",
          a(
            { href: `${to("apps", app_name, "logs")}?q=${one.request_id}`, title: "Log lines with this request id" },
            one.request_id,
          ),
          one.trace_id ? code({ title: one.trace_id }, one.trace_id.slice(0, 8)) : "",
        ],
      })),
    ),
    requests.length > SHOWN
      ? p({ class: "dim" }, `and ${requests.length - SHOWN} more: `, code(`hangar requests ${app_name}`))
      : null,
  );
}
