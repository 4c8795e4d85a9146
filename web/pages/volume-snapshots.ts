/** A volume's usage over time with its snapshots on the same axis, and the snapshots as a list. */
import type { VNode } from "preact";
import { div, h, p } from "../html.ts";
import {
  Action,
  Ago,
  badge,
  block,
  card,
  empty,
  identifier,
  sheet,
  showMessage,
  type useAnswer,
  when,
} from "../parts/basics.ts";
import { useShared } from "../parts/controls.ts";
import { confirmed } from "../parts/dialog.ts";
import { bytes } from "../parts/format.ts";
import { go } from "../router.ts";
import { call } from "../session.ts";
import { type Snapshot, VolumeUsage } from "./volume-usage.ts";

interface Params {
  app_name: string;
  volume_id: string;
}

const read = (params: Params, signal: AbortSignal) =>
  call("GET /v1/apps/:app_name/volumes/:volume_id/snapshots", { params, signal });
type Listed = Awaited<ReturnType<typeof read>>[number];

interface Props {
  params: Params;
  volume: { id: string; name: string; region: string; created_at: string };
  readOnly: boolean;
}

interface SnapshotsProps extends Props {
  answer: ReturnType<typeof useAnswer<Listed[]>>;
  restore: (snapshot: Snapshot) => Promise<void>;
}

/** Creates a copy as a new volume. */
export async function copyVolume(
  { app_name }: Params,
  body: { name: string } & Record<string, unknown>,
): Promise<void> {
  // In the same zone.
  const request = { ...body, require_unique_zone: false };
  const made = await call("POST /v1/apps/:app_name/volumes", { params: { app_name }, body: request });
  showMessage(`Restoring into ${made.name}.`);
  go("volumes", app_name, made.id);
}

export function VolumeData(props: Props): VNode {
  const { params, volume, readOnly } = props;
  const answer = useShared((signal) => read(params, signal), [params.volume_id]);
  const restore = async ({ id: snapshot_id, created_at }: Snapshot): Promise<void> => {
    const taken = new Date(created_at).toLocaleString();
    const text = `It becomes a new volume beside ${volume.name}, which stays as it is.`;
    if (!(await confirmed(`Restore the snapshot of ${taken}?`, text, "Restore", false))) return;
    await copyVolume(params, { name: volume.name, region: volume.region, snapshot_id });
  };
  return div(
    h(VolumeUsage, { volume, snapshots: answer.value ?? [], ...(readOnly ? {} : { onRestore: restore }) }),
    h(Snapshots, { ...props, answer, restore }),
  );
}

function Snapshots({ params, volume, readOnly, answer, restore }: SnapshotsProps): VNode {
  const take = async (): Promise<void> => {
    await call("POST /v1/apps/:app_name/volumes/:volume_id/snapshots", { params });
    showMessage("Creating the snapshot.");
    answer.again();
  };
  const remove = (snapshot_id: string) => async (): Promise<void> => {
    if (
      !(await confirmed(
        "Delete this snapshot?",
        "Data that only this snapshot contains is deleted permanently.",
        "Delete it",
      ))
    )
      return;
    await call("DELETE /v1/apps/:app_name/volumes/:volume_id/snapshots/:snapshot_id", {
      params: { ...params, snapshot_id },
    });
    answer.again();
  };
  return card(
    "Snapshots",
    readOnly ? null : p(h(Action, { name: "Create snapshot", work: take })),
    when(answer, (snapshots) =>
      snapshots.length === 0
        ? empty(
            "None yet.",
            p("One is created every day while backups are on. Manually:"),
            block(`hangar snapshots create ${volume.id}`),
          )
        : sheet(
            "Snapshots",
            ["taken", "status", "kind", "size", "stored", "expires", "id", ...(readOnly ? [] : ["actions"])],
            snapshots.map((snapshot) => ({
              key: snapshot.id,
              cells: [
                h(Ago, { ms: Date.parse(snapshot.created_at) }),
                badge(snapshot.status),
                snapshot.kind,
                bytes(snapshot.size),
                bytes(snapshot.stored_bytes),
                new Date(snapshot.expires_at).toLocaleDateString(),
                identifier(snapshot.id),
                ...(readOnly
                  ? []
                  : [
                      div(
                        { class: "actions" },
                        h(Action, {
                          name: "Restore",
                          title: "As a new volume beside this one",
                          work: () => restore(snapshot),
                        }),
                        h(Action, { name: "Delete", class: "danger", work: remove(snapshot.id) }),
                      ),
                    ]),
              ],
            })),
          ),
    ),
  );
}
