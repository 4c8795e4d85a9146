import type { Volume } from "#client/api.ts";
import { systemClock } from "#core/clock.ts";
import { count } from "#core/words.ts";
import { listTable } from "../lists.ts";
import { ago, bytesText, facts } from "../output.ts";
import { firstArgument, neededApp, numberOption, textOption, UsageError, type Verb } from "../verb.ts";
import { APP, findVolume, untilMade, VOLUME, volumePages } from "./find.ts";

const PATH = "/v1/apps/:app_name/volumes/:volume_id";

export const volumesList: Verb = {
  words: "volumes list",
  summary: "List the volumes of an app, or of all apps",
  options: [
    ["-a, --app <app>", "only this app's"],
    ["--org <slug>", "all of this organization (default: the token's own, or personal)"],
    ["--deleted", "include deleted ones that can be restored"],
  ],
  lists: true,
  examples: ["hangar volumes list"],
  async run(context, input) {
    return await listTable(context, input, volumePages(context, input, input.options["deleted"] === true), {
      heads: ["id", "name", "app", "state", "size", "used", "region", "machine", "created"],
      row: (volume) => [
        volume.id,
        volume.name,
        volume.app_name,
        volume.state,
        `${volume.size_gb} GB${volume.needs_restart ? " (restart)" : ""}`,
        volume.blocks === 0 ? "" : `${usedPercent(volume)} %`,
        `${volume.region} (${volume.zone})`,
        volume.attached_machine_id ?? "",
        ago(volume.created_at, systemClock.now()),
      ],
      none: "no volumes yet; `hangar volumes create <name> --app <app>` makes one",
    });
  },
};

const usedPercent = ({ blocks, blocks_avail }: Volume): string => (100 * (1 - blocks_avail / blocks)).toFixed(1);

export const volumesCreate: Verb = {
  words: "volumes create",
  summary: "Create a volume",
  arguments: [["<name>", "letters, digits, underscores and dashes"]],
  options: [
    ["-a, --app <app>", "the app it belongs to"],
    ["--size <gb>", "its size (default: 3)"],
    ["--region <region>", "where"],
    ["--retention <days>", "how long its snapshots are kept (default: 5)"],
    ["--no-encryption", "store the data unencrypted"],
    ["--no-backup", "no daily snapshots"],
    ["--no-require-unique-zone", "allow a zone that already has a volume of this name"],
    ["--cpus <n>", "place it where a machine with this many CPUs fits"],
    ["--memory <mb>", "place it where a machine with this much memory fits"],
  ],
  examples: ["hangar volumes create data --app machinery --size 1 --retention 7"],
  async run(context, input) {
    const app_name = neededApp(input);
    const { options } = input;
    const [cpus, memory_mb] = [numberOption(input, "cpus"), numberOption(input, "memory")];
    const body = {
      name: firstArgument(input),
      region: textOption(input, "region"),
      size_gb: numberOption(input, "size"),
      snapshot_retention: numberOption(input, "retention"),
      encrypted: options["encryption"] !== false,
      auto_backup_enabled: options["backup"] !== false,
      require_unique_zone: options["requireUniqueZone"] !== false,
      ...(cpus || memory_mb ? { compute: { cpus, memory_mb } } : {}),
    };
    const volume = await context.client.call("POST /v1/apps/:app_name/volumes", { params: { app_name }, body });
    for (const warning of volume.warnings ?? []) context.say(`warning: ${warning}`);
    return { data: volume, text: `created ${volume.id} (${volume.name}, ${volume.size_gb} GB) in ${volume.region}` };
  },
};

export const volumesShow: Verb = {
  words: "volumes show",
  summary: "Show a volume",
  arguments: [VOLUME],
  options: [APP],
  completes: "volumes",
  examples: ["hangar volumes show $VOLUME"],
  async run(context, input) {
    const params = await findVolume(context, input, true);
    const volume = await context.client.call(`GET ${PATH}`, { params });
    return { data: volume, text: describe(volume, params.app_name) };
  },
};

function describe(volume: Volume, app_name: string): string {
  const pairs: [string, string][] = [
    ["id", volume.id],
    ["name", volume.name],
    ["app", app_name],
    ["state", volume.state + (volume.error ? `: ${volume.error}` : "")],
    ["size", `${volume.size_gb} GB, ${bytesText(volume.bytes_used)} used`],
    ["region", `${volume.region} (zone ${volume.zone})`],
    ["encrypted", volume.encrypted ? `yes, with ${volume.encryption}` : "no"],
    ["machine", volume.attached_machine_id ?? "none"],
    ["snapshots", snapshotWords(volume)],
    ["created", volume.created_at],
  ];
  if (volume.needs_restart)
    pairs.push(["restart", `needed to use all of it: hangar machines restart ${volume.attached_machine_id}`]);
  if (volume.recoverable_until) pairs.push(["recoverable", `until ${volume.recoverable_until}`]);
  return facts(pairs);
}

const snapshotWords = ({ auto_backup_enabled, snapshot_retention }: Volume): string =>
  `${auto_backup_enabled ? "daily" : "on demand only"}, kept for ${count(snapshot_retention, "day")}`;

export const volumesExtend: Verb = {
  words: "volumes extend",
  summary: "Extend a volume",
  arguments: [VOLUME],
  options: [["--size <gb>", "its new size (required)"], APP],
  completes: "volumes",
  examples: ["hangar volumes extend $VOLUME --size 5"],
  async run(context, input) {
    const size_gb = numberOption(input, "size");
    if (size_gb === undefined) throw new UsageError("set the size: --size <gb>");
    const params = await findVolume(context, input);
    const answer = await context.client.call(`PUT ${PATH}/extend`, { params, body: { size_gb } });
    const { volume, needs_restart } = answer;
    const restart = needs_restart
      ? `; machine ${volume.attached_machine_id} sees it after a restart: hangar machines restart ${volume.attached_machine_id}`
      : "";
    return { data: answer, text: `${volume.id} has ${volume.size_gb} GB${restart}` };
  },
};

export const volumesUpdate: Verb = {
  words: "volumes update",
  summary: "Change a volume's snapshot schedule and retention",
  arguments: [VOLUME],
  options: [["--retention <days>", "1 to 60"], ["--backup <on|off>", "daily snapshots"], APP],
  completes: "volumes",
  examples: ["hangar volumes update $VOLUME --retention 10 --backup on"],
  async run(context, input) {
    const backup = textOption(input, "backup");
    if (backup !== undefined && backup !== "on" && backup !== "off") throw new UsageError("--backup is on or off");
    const body = {
      snapshot_retention: numberOption(input, "retention"),
      auto_backup_enabled: backup === undefined ? undefined : backup === "on",
    };
    const params = await findVolume(context, input);
    const volume = await context.client.call(`PUT ${PATH}`, { params, body });
    return { data: volume, text: `${volume.id}: snapshots ${snapshotWords(volume)}` };
  },
};

export const volumesFork: Verb = {
  words: "volumes fork",
  summary: "Fork a volume: copy its current data",
  arguments: [VOLUME],
  options: [
    ["--name <name>", "the copy's name (default: the same)"],
    ["--size <gb>", "its size (default: the same)"],
    ["--region <region>", "where (default: the same)"],
    APP,
  ],
  completes: "volumes",
  examples: ["hangar volumes fork $VOLUME --name copy"],
  async run(context, input) {
    const { app_name, volume_id } = await findVolume(context, input);
    const source = await context.client.call(`GET ${PATH}`, { params: { app_name, volume_id } });
    const body = {
      name: textOption(input, "name") ?? source.name,
      size_gb: numberOption(input, "size"),
      region: textOption(input, "region"),
      source_volume_id: volume_id,
      require_unique_zone: false,
    };
    const made = await context.client.call("POST /v1/apps/:app_name/volumes", { params: { app_name }, body });
    const volume = await untilMade(context, { app_name, volume_id: made.id }, "copying");
    return { data: volume, text: `created ${volume.id} (${volume.name}), a copy of ${volume_id}` };
  },
};

export const volumesDelete: Verb = {
  words: "volumes delete",
  summary: "Delete a volume; `volumes undelete` restores it for some hours",
  arguments: [VOLUME],
  options: [APP],
  completes: "volumes",
  examples: ["hangar volumes delete $VOLUME"],
  async run(context, input) {
    const volume = await context.client.call(`DELETE ${PATH}`, { params: await findVolume(context, input) });
    const back = `can be restored until ${volume.recoverable_until}: hangar volumes undelete ${volume.id}`;
    return { data: volume, text: `deleted ${volume.id} (${volume.name}); it ${back}` };
  },
};

export const volumesUndelete: Verb = {
  words: "volumes undelete",
  summary: "Restore a deleted volume",
  arguments: [VOLUME],
  options: [APP],
  examples: ["hangar volumes undelete $VOLUME"],
  async run(context, input) {
    const volume = await context.client.call(`POST ${PATH}/undelete`, {
      params: await findVolume(context, input, true),
    });
    return { data: volume, text: `${volume.id} (${volume.name}) is back` };
  },
};
