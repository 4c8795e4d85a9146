import type { VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import { a, code, dd, div, dl, dt, form, h, input, nav, p, span } from "../html.ts";
import {
  Action,
  Ago,
  badge,
  card,
  Field,
  identifier,
  loading,
  pageHead,
  problem,
  showMessage,
} from "../parts/basics.ts";
import { useShared } from "../parts/controls.ts";
import { confirmed } from "../parts/dialog.ts";
import { bytes, plural } from "../parts/format.ts";
import { to } from "../router.ts";
import { call, isReadOnly, session } from "../session.ts";
import { share } from "./overview.ts";
import { copyVolume, VolumeData } from "./volume-snapshots.ts";

interface Params {
  app_name: string;
  volume_id: string;
}

const read = (params: Params, signal: AbortSignal) =>
  call("GET /v1/apps/:app_name/volumes/:volume_id", { params, signal });
type Volume = Awaited<ReturnType<typeof read>>;

/** Persistent states; in any other the page polls. */
const RESTS = new Set(["created", "destroyed", "failed"]);
const EVERY_MS = 2000;

/** One volume: facts, usage over time, snapshots, forks and restores. */
export function VolumePage(params: Params): VNode {
  const readOnly = isReadOnly(useCell(session));
  const answer = useShared((signal) => read(params, signal), [params.volume_id]);
  const { value: volume, error } = answer;
  useEffect(() => {
    if (!volume || (RESTS.has(volume.state) && !volume.progress)) return;
    const timer = setTimeout(answer.again, EVERY_MS);
    return () => clearTimeout(timer);
  }, [volume]);
  if (!volume) return div(crumbs(params), error === undefined ? loading() : problem(error));
  return div(
    crumbs(params),
    pageHead(volume.name, ...(readOnly ? [] : buttons(params, volume, answer.again))),
    facts(params, volume),
    readOnly ? null : h(Extend, { params, volume, again: answer.again }),
    h(VolumeData, { params, volume, readOnly }),
  );
}

const crumbs = ({ app_name }: Params): VNode =>
  nav(
    { class: "crumbs", "aria-label": "Above" },
    a({ href: to("volumes") }, "Volumes"),
    " / ",
    a({ href: to("apps", app_name) }, app_name),
  );

function buttons(params: Params, volume: Volume, again: () => void): VNode[] {
  const remove = async (): Promise<void> => {
    const text = "It can be restored for some hours; its snapshots stay until they expire.";
    if (!(await confirmed(`Delete ${volume.name}?`, text, "Delete it"))) return;
    await call("DELETE /v1/apps/:app_name/volumes/:volume_id", { params });
    again();
  };
  const undelete = async (): Promise<void> => {
    await call("POST /v1/apps/:app_name/volumes/:volume_id/undelete", { params });
    again();
  };
  if (volume.deleted_at) return [h(Action, { name: "Restore volume", class: "primary", work: undelete })];
  return [
    h(Action, {
      name: "Fork",
      work: () => copyVolume(params, { name: volume.name, region: volume.region, source_volume_id: volume.id }),
    }),
    h(Action, { name: "Delete", class: "danger", work: remove }),
  ];
}

function facts({ app_name }: Params, volume: Volume): VNode {
  const { attached_machine_id, progress } = volume;
  const rows: [string, VNode | string][] = [
    [
      "State",
      span(badge(volume.state), progress ? ` ${bytes(progress.done_bytes)} of ${bytes(progress.total_bytes)}` : ""),
    ],
    ["Id", identifier(volume.id)],
    ["Used", share(volume.bytes_used, volume.bytes_total, bytes, "space")],
    [
      "Mounted",
      attached_machine_id
        ? a({ href: to("machines", app_name, attached_machine_id) }, code(attached_machine_id))
        : "not mounted",
    ],
    ["Where", `${volume.region}, zone ${volume.zone}`],
    ["Encryption", volume.encrypted ? (volume.encryption ?? "yes") : "none"],
    ["Created", h(Ago, { ms: Date.parse(volume.created_at) })],
    [
      "Backups",
      volume.auto_backup_enabled
        ? `every day, kept for ${plural(volume.snapshot_retention, "day")}`
        : "manual snapshots only",
    ],
  ];
  return div(
    dl({ class: "facts panel" }, ...rows.map(([name, value]) => div({ key: name }, dt(name), dd(value)))),
    volume.error ? div({ class: "note bad" }, volume.error) : null,
    volume.needs_restart
      ? p({ class: "note" }, `It has grown to ${volume.size_gb} GB; restart its machine to use all of it.`)
      : null,
    volume.deleted_at
      ? p(
          { class: "note bad" },
          `Deleted; it can be restored until ${new Date(volume.recoverable_until ?? "").toLocaleString()}.`,
        )
      : null,
  );
}

function Extend({ params, volume, again }: { params: Params; volume: Volume; again: () => void }): VNode {
  const [size, setSize] = useState(String(volume.size_gb));
  const extend = async (): Promise<void> => {
    const body = { size_gb: Number(size) };
    const { needs_restart } = await call("PUT /v1/apps/:app_name/volumes/:volume_id/extend", { params, body });
    showMessage(needs_restart ? "It is larger after the machine's next start." : "It is larger.");
    again();
  };
  return card(
    "Size",
    form(
      { class: "row-form", onSubmit: (event) => event.preventDefault() },
      h(Field, {
        name: "GB",
        hint: "It can only grow.",
        children: (id) =>
          input({
            id,
            type: "number",
            class: "short",
            min: volume.size_gb,
            value: size,
            onInput: (event) => setSize(event.currentTarget.value),
          }),
      }),
      h(Action, { name: "Extend", disabled: Number(size) <= volume.size_gb, work: extend }),
    ),
  );
}
