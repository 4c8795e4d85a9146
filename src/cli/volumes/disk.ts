import { bytesText, facts, table } from "../output.ts";
import type { Verb } from "../verb.ts";

export const diskFree: Verb = {
  words: "df",
  summary: "Show the disk space that volumes and snapshots use",
  examples: ["hangar df"],
  async run({ client }) {
    const disk = await client.call("GET /v1/platform/disk", {});
    const taken = disk.volumes.reduce((sum, { taken_bytes }) => sum + taken_bytes, 0);
    const head = facts([
      ["disk", `${bytesText(disk.free_bytes)} free of ${bytesText(disk.total_bytes)}`],
      ["volumes", `${disk.volumes.length}, ${bytesText(taken)} (driver ${disk.driver})`],
      ["snapshots", `${bytesText(disk.objects.bytes)} in ${disk.objects.place}`],
      ["copies", disk.reflink ? "share blocks (reflink)" : `are full copies: ${disk.reflink_reason}`],
      ["encryption", disk.encryption ?? `none works here: ${disk.encryption_reason}`],
    ]);
    const rows = disk.volumes.map(({ id, name, app, state, size_bytes, taken_bytes, snapshots, snapshot_bytes }) => [
      id,
      name,
      app,
      state,
      bytesText(size_bytes),
      bytesText(taken_bytes),
      String(snapshots),
      bytesText(snapshot_bytes),
    ]);
    const heads = ["volume", "name", "app", "state", "size", "on disk", "snapshots", "stored"];
    return { data: disk, text: rows.length === 0 ? head : `${head}\n\n${table(heads, rows)}` };
  },
};

export const garbageCollect: Verb = {
  words: "gc",
  summary: "List unused data of volumes and snapshots; --yes deletes it",
  options: [
    ["--yes", "delete it"],
    ["--deleted", "include deleted volumes that could still be restored"],
  ],
  examples: ["hangar gc", "hangar gc --yes"],
  async run({ client }, { options }) {
    const apply = options["yes"] === true;
    const body = { apply, deleted: options["deleted"] === true };
    const found = await client.call("POST /v1/platform/disk/collect", { body });
    if (found.waste.length === 0) return { data: found, text: "nothing to delete" };
    const rows = found.waste.map(({ kind, id, bytes, reason }) => [kind, id, bytesText(bytes), reason]);
    const sum = apply
      ? `freed ${bytesText(found.bytes)}`
      : `${bytesText(found.bytes)} would go: hangar gc${body.deleted ? " --deleted" : ""} --yes`;
    return { data: found, text: `${table(["what", "id", "size", "why"], rows)}\n${sum}` };
  },
};
