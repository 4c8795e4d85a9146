import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { div, h, p } from "../html.ts";
import { useAnswer, when } from "../parts/basics.ts";
import { textField } from "../parts/controls.ts";
import { call } from "../session.ts";
import type { ActionDialogProps } from "./app-actions-props.ts";
import { type Deploying, DeploymentDialog, type Undo } from "./app-deployment.ts";

const GROUP_KEY = "fly_process_group";
const MACHINES = 1000;

interface Now {
  counts: Record<string, number>;
  memory_mb: number | undefined;
  cpus: number | undefined;
}

interface Draft {
  counts: Record<string, string>;
  memory_mb: string;
  cpus: string;
}

/** Number of machines of each process group, and their size. */
export function ScaleDialog({ app_name, status, onClose }: ActionDialogProps): VNode {
  const [draft, setDraft] = useState<Draft>({ counts: {}, memory_mb: "", cpus: "" });
  const version = status.release?.version ?? 0;
  const answer = useAnswer((signal) => sizesNow(app_name, version, signal), [app_name]);
  const now = answer.value;
  const body = now && bodyOf(draft, now);
  const number = (error: string | undefined) => ({ type: "number", class: "short", min: 0, error });
  return h(DeploymentDialog, {
    title: `Scale ${app_name}`,
    app_name,
    onClose,
    body,
    undo: now && body && undoOf(body, now, version),
    form: (errors) =>
      div(
        when(answer, ({ counts, memory_mb, cpus }) =>
          div(
            ...Object.entries(counts).map(([group, count]) =>
              textField(
                Object.keys(counts).length > 1 ? `Machines of ${group}` : "Machines",
                draft.counts[group] ?? String(count),
                (value) => setDraft({ ...draft, counts: { ...draft.counts, [group]: value } }),
                number(errors[`body.counts.${group}`]),
              ),
            ),
            textField("Memory, MB", draft.memory_mb, (value) => setDraft({ ...draft, memory_mb: value }), {
              ...number(errors["body.memory_mb"]),
              placeholder: memory_mb === undefined ? "256" : String(memory_mb),
              hint: "Empty: as it is. Another size restarts the machines, as a deploy does.",
            }),
            textField("CPUs", draft.cpus, (value) => setDraft({ ...draft, cpus: value }), {
              ...number(errors["body.cpus"]),
              placeholder: cpus === undefined ? "1" : String(cpus),
            }),
          ),
        ),
        body ? null : p({ class: "dim" }, "Change a number to see what happens."),
      ),
  });
}

/** What runs now: process groups of the release with their machines, and the size of the first. */
async function sizesNow(app_name: string, version: number, signal: AbortSignal): Promise<Now> {
  const params = { app_name };
  const [release, machines] = await Promise.all([
    call("GET /v1/apps/:app_name/releases/:version", { params: { app_name, version: String(version) }, signal }),
    call("GET /v1/apps/:app_name/machines", { params, query: { limit: MACHINES }, signal }),
  ]);
  const { groups } = release.definition as { groups: { name: string; once?: boolean }[] };
  const groupOf = (config: object | undefined): string | undefined =>
    ((config as Record<string, unknown>)["metadata"] as Record<string, string> | undefined)?.[GROUP_KEY];
  const counts = groups
    .filter(({ once }) => !once)
    .map(({ name }): [string, number] => [name, machines.filter(({ config }) => groupOf(config) === name).length]);
  const guest = (machines[0]?.config as Record<string, unknown> | undefined)?.["guest"] as
    | { memory_mb?: number; cpus?: number }
    | undefined;
  return { counts: Object.fromEntries(counts), memory_mb: guest?.memory_mb, cpus: guest?.cpus };
}

/** Only what differs. */
function bodyOf({ counts, memory_mb, cpus }: Draft, now: Now): Deploying | undefined {
  const changed = Object.entries(counts).filter(
    ([group, value]) => value !== "" && Number(value) !== now.counts[group],
  );
  const size = {
    ...(memory_mb === "" || Number(memory_mb) === now.memory_mb ? {} : { memory_mb: Number(memory_mb) }),
    ...(cpus === "" || Number(cpus) === now.cpus ? {} : { cpus: Number(cpus) }),
  };
  const wanted = Object.fromEntries(changed.map(([group, value]) => [group, Number(value)]));
  if (changed.length === 0 && Object.keys(size).length === 0) return undefined;
  return { action: "scale", ...(changed.length > 0 ? { counts: wanted } : {}), ...size };
}

/** The same fields as they were. */
function undoOf(body: Deploying, now: Now, version: number): Undo {
  const { counts, memory_mb, cpus } = body as unknown as Now;
  if (memory_mb !== undefined || cpus !== undefined)
    return { title: `Roll back to v${version}`, body: { action: "rollback", version } };
  const before = Object.fromEntries(Object.keys(counts).map((group) => [group, now.counts[group]]));
  return { title: "Scale back", body: { action: "scale", counts: before } };
}
