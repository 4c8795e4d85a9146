import type { VNode } from "preact";
import { useCell } from "../cell.ts";
import { fleet } from "../fleet.ts";
import { code, div, h, p, span } from "../html.ts";
import { Action, badge, card, pageHead, sheet, useAnswer, when } from "../parts/basics.ts";
import { useRounds } from "../parts/controls.ts";
import { confirmed } from "../parts/dialog.ts";
import { figure, megabytes } from "../parts/format.ts";
import { call, isFull, session } from "../session.ts";
import { share } from "./overview.ts";

const EVERY_MS = 5000;

type Act = "fail" | "recover" | "drain" | "uncordon";

/** Confirmations of actions that are hard to revert. */
const QUESTIONS: Partial<Record<Act, { ask: string; words: string }>> = {
  fail: {
    ask: "Mark as failed",
    words: "Its machines count as lost, and their standbys start on other hosts.",
  },
  drain: {
    ask: "Drain host",
    words: "No new machines are placed there, and its machines move to other hosts.",
  },
};

/** What a state means for the host's machines, where that is not what one expects. */
const MEANINGS: Record<string, string> = {
  unknown: " no heartbeat: machines that another host may start are frozen",
  failed: " its lease has ended: machines that another host may start start there",
};

const stateOf = ({ state, cordoned }: { state: string; cordoned: boolean }): VNode =>
  span(badge(cordoned && state === "ok" ? "cordoned" : state), span({ class: "dim" }, MEANINGS[state] ?? ""));

/** Hosts and their usage. */
export function Page(): VNode {
  const full = isFull(useCell(session));
  const { machines } = useCell(fleet);
  const round = useRounds(EVERY_MS);
  const answer = useAnswer((signal) => call("GET /v1/platform/hosts", { signal }), [machines.size, round]);
  const regions = useAnswer((signal) => call("GET /v1/platform/regions", { signal }), []);
  const act = (route: Act, host_id: string) => async (): Promise<void> => {
    const question = QUESTIONS[route];
    if (question && !(await confirmed(`${question.ask} ${host_id}?`, question.words, question.ask))) return;
    await call(`POST /v1/platform/hosts/:host_id/${route}`, { params: { host_id } });
    answer.again();
  };
  const buttons = ({ id, state, cordoned }: { id: string; state: string; cordoned: boolean }): VNode =>
    state === "failed"
      ? h(Action, { name: "Let rejoin", work: act("recover", id) })
      : div(
          { class: "actions" },
          cordoned
            ? h(Action, { name: "Uncordon", work: act("uncordon", id) })
            : h(Action, { name: "Drain", work: act("drain", id) }),
          h(Action, { name: "Mark as failed", class: "danger", work: act("fail", id) }),
        );
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
            stateOf(host),
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
        "Another box joins with the token that ",
        code("hangar hosts join-token"),
        " prints; without any, this box is the only one.",
      ),
    ),
  );
}
