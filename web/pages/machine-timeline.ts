import type { VNode } from "preact";
import { code, div, h, li, ol, p, pre, section, span, time } from "../html.ts";
import { badge, empty, useAnswer, when } from "../parts/basics.ts";
import { isBad, reasonOf } from "../parts/event.ts";
import { clockTime, duration, exactTime } from "../parts/format.ts";
import { call } from "../session.ts";
import type { TabProps } from "./machine-tab.ts";

interface Happened {
  id: string;
  type: string;
  status: string;
  source: string;
  timestamp: number;
  request?: Record<string, unknown> | undefined;
}

const SHOWN = 200;

/** The machine's events, newest first, with the duration of each state. */
export function Timeline({ machine, app_name, turn }: TabProps): VNode {
  const answer = useAnswer(
    (signal) =>
      call("GET /v1/apps/:app_name/machines/:machine_id/events", {
        params: { app_name, machine_id: machine.id },
        query: { limit: SHOWN },
        signal,
      }),
    [machine.id, turn],
  );
  return section(
    { "aria-label": "Events" },
    when(answer, (events) =>
      events.length === 0
        ? empty("No events yet.")
        : div(
            bar(events.toReversed()),
            ol(
              { class: "timeline" },
              ...events.map((event, index) => h(Step, { event, next: events[index - 1], key: event.id })),
            ),
            events.length === SHOWN
              ? p({ class: "dim" }, `The newest ${SHOWN}; the whole log is at `, code(`/v1/apps/${app_name}/events`))
              : null,
          ),
    ),
  );
}

/** One event. `next` is the one after it, whose time says how long this state lasted. */
function Step({ event, next }: { event: Happened; next: Happened | undefined }): VNode {
  const lasted = next ? duration(next.timestamp - event.timestamp) : "now";
  const why = reasonOf(event);
  return li(
    { class: isBad(event) ? "bad" : "" },
    time(
      { dateTime: new Date(event.timestamp).toISOString(), title: exactTime(event.timestamp) },
      clockTime(event.timestamp),
    ),
    badge(event.status),
    div(
      span(event.type, span({ class: "dim" }, ` by ${event.source}`)),
      why ? span({ class: "why" }, why) : null,
      event.request && !why ? pre({ class: "small" }, JSON.stringify(event.request)) : null,
    ),
    span({ class: "lasted" }, lasted),
  );
}

const TIMES: Record<string, string> = { started: "good", failed: "bad", suspended: "cold" };

/** The same as a bar: the last states, with widths by square root, so that short ones are visible. */
function bar(oldestFirst: readonly Happened[]): VNode {
  const last = oldestFirst.slice(-24);
  const end = Date.now();
  const spans = last.map((event, index) => {
    const ms = (last[index + 1]?.timestamp ?? end) - event.timestamp;
    return { event, ms, width: Math.max(1, Math.sqrt(Math.max(1, ms))) };
  });
  return div(
    { class: "statebar", "aria-hidden": "true" },
    ...spans
      .filter(({ ms }) => ms > 0)
      .map(({ event, ms, width }) =>
        span({
          key: event.id,
          class: TIMES[event.status] ?? (["stopped", "created"].includes(event.status) ? "calm" : "busy"),
          style: { flexGrow: width },
          title: `${event.status} for ${duration(ms)}`,
        }),
      ),
  );
}
