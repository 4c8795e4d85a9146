import { ClientError } from "#client/client.ts";
import { systemClock } from "#core/clock.ts";
import { listTable, pagesOf } from "../lists.ts";
import { ago, bytesText } from "../output.ts";
import { watch } from "../progress.ts";
import { numberOption, textOption, type Verb } from "../verb.ts";
import { APP, findVolume, untilMade, VOLUME } from "./find.ts";

const PATH = "/v1/apps/:app_name/volumes/:volume_id/snapshots";
const SNAPSHOT: readonly [string, string] = ["<snapshot>", "the snapshot's id"];

export const snapshotsList: Verb = {
  words: "snapshots list",
  summary: "List a volume's snapshots, also after it was deleted",
  arguments: [VOLUME],
  options: [APP],
  completes: "volumes",
  lists: true,
  examples: ["hangar snapshots list $VOLUME"],
  async run(context, input) {
    const params = await findVolume(context, input, true);
    return await listTable(context, input, pagesOf(context.client, input, `GET ${PATH}`, { params }), {
      heads: ["id", "kind", "data", "stored", "created", "expires"],
      row: ({ id, kind, size, stored_bytes, created_at, expires_at }) => [
        id,
        kind.replace("_", " "),
        bytesText(size),
        bytesText(stored_bytes),
        ago(created_at, systemClock.now()),
        expires_at,
      ],
      none: "no snapshots yet; `hangar snapshots create <volume>` takes one",
    });
  },
};

export const snapshotsCreate: Verb = {
  words: "snapshots create",
  summary: "Take a snapshot now and wait until it is stored",
  arguments: [VOLUME],
  options: [["--detach", "do not wait"], APP],
  completes: "volumes",
  examples: ["hangar snapshots create $VOLUME"],
  async run(context, input) {
    const { client } = context;
    const params = await findVolume(context, input);
    const { Msg } = await client.call(`POST ${PATH}`, { params });
    const snapshot_id = Msg.backup.graph_id;
    if (input.options["detach"] === true) return { data: Msg.backup, text: snapshot_id };
    const snapshot = await watch("storing", async () => {
      const value = await client.call(`GET ${PATH}/:snapshot_id`, { params: { ...params, snapshot_id } });
      return { value, done: value.status === "created" || value.status === "failed", progress: value.progress };
    });
    if (snapshot.status === "failed") {
      const error = `snapshot ${snapshot.id} failed: ${snapshot.message}`;
      throw new ClientError(500, { error, status: "storage_failed" });
    }
    const { id, size, stored_bytes } = snapshot;
    return { data: snapshot, text: `${id}: ${bytesText(size)} of data, ${bytesText(stored_bytes)} stored` };
  },
};

export const snapshotsRestore: Verb = {
  words: "snapshots restore",
  summary: "Restore a snapshot into a new volume",
  arguments: [VOLUME, SNAPSHOT],
  options: [
    ["--name <name>", "the new volume's name (default: restored)"],
    ["--region <region>", "where (default: where the volume is)"],
    ["--size <gb>", "its size (default: what the volume had)"],
    ["--detach", "do not wait until it is restored"],
    APP,
  ],
  completes: "volumes",
  examples: ["hangar snapshots restore $VOLUME $SNAPSHOT --name from_snapshot"],
  async run(context, input) {
    const { client } = context;
    const params = await findVolume(context, input, true);
    const { app_name } = params;
    const source = await client
      .call("GET /v1/apps/:app_name/volumes/:volume_id", { params })
      .catch(() => ({ region: "local" }));
    const body = {
      name: textOption(input, "name") ?? "restored",
      region: textOption(input, "region") ?? source.region,
      size_gb: numberOption(input, "size"),
      snapshot_id: input.args[1] ?? "",
      require_unique_zone: false,
    };
    const made = await client.call("POST /v1/apps/:app_name/volumes", { params: { app_name }, body });
    if (input.options["detach"] === true) return { data: made, text: made.id };
    const volume = await untilMade(context, { app_name, volume_id: made.id }, "restoring");
    return { data: volume, text: `created ${volume.id} (${volume.name}) from ${body.snapshot_id}` };
  },
};

export const snapshotsDelete: Verb = {
  words: "snapshots delete",
  summary: "Delete a snapshot before it expires",
  arguments: [VOLUME, SNAPSHOT],
  options: [APP],
  examples: ["hangar snapshots delete $VOLUME $SNAPSHOT"],
  async run(context, input) {
    const params = { ...(await findVolume(context, input, true)), snapshot_id: input.args[1] ?? "" };
    const answer = await context.client.call(`DELETE ${PATH}/:snapshot_id`, { params });
    return { data: answer, text: `deleted ${params.snapshot_id}` };
  },
};
