import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import { a, button, code, div, h, p, span } from "../html.ts";
import type { PageProps } from "../page-props.ts";
import {
  Action,
  badge,
  block,
  card,
  empty,
  identifier,
  pageHead,
  sheet,
  showMessage,
  useAnswer,
  when,
} from "../parts/basics.ts";
import { useShared } from "../parts/controls.ts";
import { confirmed } from "../parts/dialog.ts";
import { bytes } from "../parts/format.ts";
import { icon } from "../parts/icon.ts";
import { to } from "../router.ts";
import { call, isFull, isReadOnly, org, session } from "../session.ts";
import { share } from "./overview.ts";
import { VolumePage } from "./volume.ts";
import { NewVolume } from "./volume-new.ts";

type Volume = Awaited<ReturnType<typeof list>>[number];

/** Volumes of all apps: the API lists them by app. */
async function list(signal: AbortSignal) {
  const { apps } = await call("GET /v1/apps", { query: { org_slug: org() }, signal });
  const lists = await Promise.all(
    apps
      .filter(({ volume_count }) => volume_count > 0)
      .map(async ({ name: app_name }) => {
        const volumes = await call("GET /v1/apps/:app_name/volumes", { params: { app_name }, query: {}, signal });
        return volumes.map((volume) => ({ ...volume, app_name }));
      }),
  );
  return lists.flat();
}

/** `#/volumes`, `#/volumes/<app>/<id>`. */
export function Page({ path }: PageProps): VNode {
  const [app_name, volume_id] = path;
  return app_name && volume_id ? h(VolumePage, { app_name, volume_id, key: volume_id }) : h(VolumeList, {});
}

function VolumeList(): VNode {
  const readOnly = isReadOnly(useCell(session));
  const [making, setMaking] = useState(false);
  const answer = useShared(list, [org()]);
  const made = (): void => {
    setMaking(false);
    answer.again();
  };
  return div(
    pageHead(
      "Volumes",
      readOnly
        ? null
        : button({ type: "button", class: "primary", onClick: () => setMaking(!making) }, icon("plus"), "New volume"),
    ),
    making ? h(NewVolume, { onMade: made }) : null,
    when(answer, (volumes) => (volumes.length === 0 ? none() : table(volumes))),
    h(Disk, {}),
  );
}

const none = (): VNode =>
  empty(
    "No volumes yet.",
    p("A volume is a disk that outlives the machine it is mounted in, with a snapshot every day. On a terminal:"),
    block("hangar volumes create data --app hello --size 1"),
  );

function table(volumes: readonly Volume[]): VNode {
  return sheet(
    "Volumes",
    ["state", "name", "id", "app", "region", "used", "mounted in"],
    volumes.map((volume) => ({
      key: volume.id,
      cells: [
        badge(volume.state),
        a({ href: to("volumes", volume.app_name, volume.id) }, volume.name),
        identifier(volume.id),
        a({ href: to("apps", volume.app_name) }, volume.app_name),
        volume.region,
        share(volume.bytes_used, volume.bytes_total, bytes, "space"),
        volume.attached_machine_id
          ? a({ href: to("machines", volume.app_name, volume.attached_machine_id) }, code(volume.attached_machine_id))
          : span({ class: "dim" }, "nothing"),
      ],
    })),
  );
}

/** Disk usage of volumes and snapshots, and clean-up. */
function Disk(): VNode | null {
  const full = isFull(useCell(session));
  const answer = useAnswer(
    async (signal) => (full ? await call("GET /v1/platform/disk", { signal }) : undefined),
    [full],
  );
  const { value: disk } = answer;
  if (!disk) return null;
  const collect = async (): Promise<void> => {
    const { waste, bytes: count } = await call("POST /v1/platform/disk/collect", { body: {} });
    if (waste.length === 0) return showMessage("No unused data.");
    const what = waste.slice(0, 8).map(({ kind, id, reason }) => `${kind} ${id}: ${reason}`);
    if (
      !(await confirmed(
        `Give back ${bytes(count)}?`,
        div(...what.map((line) => p({ key: line }, line))),
        "Give it back",
      ))
    )
      return;
    await call("POST /v1/platform/disk/collect", { body: { apply: true } });
    showMessage(`${bytes(count)} given back.`);
    answer.again();
  };
  return card(
    "This disk",
    p(share(disk.total_bytes - disk.free_bytes, disk.total_bytes, bytes, "disk")),
    p(
      { class: "dim" },
      `Snapshots: ${disk.objects.count} objects, ${bytes(disk.objects.bytes)}, in ${disk.objects.place}. Copies that share blocks: ${disk.reflink ? "yes" : `no (${disk.reflink_reason})`}. Encryption: ${disk.encryption ?? `none (${disk.encryption_reason})`}.`,
    ),
    p(h(Action, { name: "Clean up unused volumes", work: collect })),
  );
}
