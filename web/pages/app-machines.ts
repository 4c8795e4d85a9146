import type { VNode } from "preact";
import { a, code, div, h, p, span } from "../html.ts";
import { Ago, badge, block, empty, sheet, useAnswer } from "../parts/basics.ts";
import { useRounds } from "../parts/controls.ts";
import { icon } from "../parts/icon.ts";
import { Spark } from "../parts/spark.ts";
import { lastSeconds, queryRange, type Series } from "../prometheus.ts";
import { to } from "../router.ts";
import { type AppTabProps, useMachines } from "./app-tab.ts";

const SHOWN = 100;
const EVERY_MS = 15_000;
const SPAN_S = 900;

const CPU = (app: string): string =>
  `sum by (instance) (rate(svc_instance_cpu{app=${app}, mode=~"user|system|iowait|steal"}[1m]))`;
const MEMORY = (app: string): string =>
  `max by (instance) (svc_instance_memory_mem_total{app=${app}} - svc_instance_memory_mem_available{app=${app}})`;

const byInstance = (series: readonly Series[]): Map<string, number[]> =>
  new Map(series.map(({ labels, points }) => [labels["instance"] ?? "", points.map(([, value]) => value)]));

/** Machines with the reason of each failure, and CPU and memory of the last quarter of an hour. */
export function AppMachines({ app_name, readOnly, status }: AppTabProps): VNode {
  const own = useMachines(app_name);
  const round = useRounds(EVERY_MS);
  const usage = useAnswer(
    async (signal) => {
      const [app, range] = [JSON.stringify(app_name), lastSeconds(SPAN_S, 60)];
      const [cpu, memory] = await Promise.all([
        queryRange(CPU(app), range, signal),
        queryRange(MEMORY(app), range, signal),
      ]);
      return { cpu: byInstance(cpu), memory: byInstance(memory) };
    },
    [app_name, round],
  ).value;
  const failures = new Map(status?.failures.map(({ machine_id, reason }) => [machine_id, reason]));
  const make = `${to("machines", "new")}?app=${encodeURIComponent(app_name)}`;
  const add = readOnly ? null : p(a({ class: "button", href: make }, icon("plus"), "New machine"));
  if (own.length === 0) return div(empty("No machines yet.", block(`hangar run hangar/hello --app ${app_name}`)), add);
  return div(
    sheet(
      "Machines",
      ["state", "name", "region", "address", "CPU", "memory", "changed"],
      own.slice(0, SHOWN).map((machine) => ({
        key: machine.id,
        cells: [
          badge(failures.has(machine.id) ? (machine.state === "started" ? "critical" : "failed") : machine.state),
          span(
            a({ href: to("machines", app_name, machine.id) }, machine.name),
            failures.has(machine.id) ? span({ class: "why" }, failures.get(machine.id)) : null,
          ),
          machine.region,
          code({ class: "dim" }, machine.private_ip),
          h(Spark, { name: `CPU of ${machine.name}`, values: usage?.cpu.get(machine.version) ?? [] }),
          h(Spark, { name: `Memory of ${machine.name}`, values: usage?.memory.get(machine.version) ?? [] }),
          h(Ago, { ms: Date.parse(machine.updated_at) }),
        ],
      })),
    ),
    own.length > SHOWN
      ? p(a({ href: `${to("machines")}?q=${encodeURIComponent(app_name)}` }, `All ${own.length}`))
      : null,
    add,
  );
}
