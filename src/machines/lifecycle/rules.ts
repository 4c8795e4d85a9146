/** Rules that refuse a create or update of a machine, with the reason. */
import { fail, type Problem } from "#core/errors.ts";
import type { UpdateMachineInput, VolumePlace } from "../inputs.ts";
import { MACHINE_LIMITS } from "../limits.ts";
import type { Machine, MachineConfig } from "../types.ts";

export function refuseInsert(result: "name_taken" | "no_app" | "limit", name: string, app_name: string): never {
  switch (result) {
    case "name_taken":
      return fail("name_taken", `Validation failed: Name has already been taken: ${name} is a machine of this app`);
    case "no_app":
      return fail("not_found", `Could not find App ${JSON.stringify(app_name)}`);
    case "limit":
      return fail(
        "limit_reached",
        `an organization has at most ${MACHINE_LIMITS.machines_per_org} machines (limit machines_per_org)`,
      );
  }
}

/** Returns the volume's place if the machine may mount it there; otherwise throws the reason. */
export function refuseVolume(
  volume: string,
  place: VolumePlace | undefined,
  wanted: { app_id: string; machine_id: string; region: string | undefined },
): VolumePlace {
  const { app_id, machine_id, region } = wanted;
  if (!place || place.app_id !== app_id) {
    const path = "body.config.mounts.0.volume";
    const problem = `${JSON.stringify(volume)} is not a volume of this app`;
    return fail("invalid_request", `${path} ${problem}`, { details: [{ path, problem }] });
  }
  const { attached_machine_id, unready, host_id } = place;
  // Attached to this very machine, when a request is repeated.
  if (attached_machine_id !== null && attached_machine_id !== machine_id) {
    fail("volume_in_use", `volume ${volume} is mounted by machine ${attached_machine_id}`, {
      facts: { attached_machine_id },
      hint: "destroy that machine, or fork the volume",
    });
  }
  if (unready !== undefined) {
    fail("volume_not_ready", `volume ${volume} cannot be mounted: ${unready}`, { retry_after_s: 1 });
  }
  if (region !== undefined && region !== place.region) {
    fail("volume_elsewhere", `volume ${volume} is on host ${host_id} in region ${place.region}, not in ${region}`, {
      facts: { volume_host: host_id, volume_region: place.region, requested: { region } },
      hint: `set region to ${place.region}`,
    });
  }
  return place;
}

/** Throws all problems, the first one as the message; does nothing when there are none. */
export function rejectInvalid(problems: Problem[]): void {
  const [first] = problems;
  if (first) fail("invalid_request", `${first.path} ${first.problem}`, { details: problems });
}

/** A mount without a volume keeps the current one: many clients send only the path again. */
export function keepVolume(config: MachineConfig, before: MachineConfig): MachineConfig {
  const [mount] = config.mounts ?? [];
  const [old] = before.mounts ?? [];
  if (!mount || mount.volume || !old?.volume) return config;
  return { ...config, mounts: [{ ...mount, volume: old.volume }] };
}

export function volumeProblems(before: MachineConfig, after: MachineConfig): Problem[] {
  const [old] = before.mounts ?? [];
  const [now] = after.mounts ?? [];
  // A new mount is added even when it names no volume.
  if (old?.volume === now?.volume && (old || !now)) return [];
  const refusal = old ? "cannot be changed" : "cannot be added";
  return [{ path: "body.config.mounts", problem: `${refusal} by an update; destroy the machine and create it again` }];
}

export function refuseMoving(machine: Machine, input: Omit<UpdateMachineInput, "config">): void {
  rejectInvalid(
    (["name", "region"] as const).flatMap((field) =>
      input[field] === undefined || input[field] === "" || input[field] === machine[field]
        ? []
        : [{ path: `body.${field}`, problem: `cannot be changed; it is ${machine[field]}` }],
    ),
  );
}

/** Machines boot with the newest secrets; a version that does not exist yet cannot be waited for. */
export function refuseSecretsVersion(current: number, wanted: number | undefined): void {
  if (wanted === undefined || wanted <= current) return;
  const path = "body.min_secrets_version";
  rejectInvalid([
    { path, problem: `is ${wanted}, but the app's secrets are at version ${current}`, allowed: `0 to ${current}` },
  ]);
}

/** Clients repeat the machine's id in the body; it must match. */
export function refuseOtherId(machine: Machine, id: string | undefined): void {
  if (!id || id === machine.id) return;
  rejectInvalid([{ path: "body.id", problem: `is not the machine of the path, ${machine.id}` }]);
}

export function refuseStale(machine: Machine, version: string | undefined): void {
  if (!version || version === machine.instance_id) return;
  fail("version_conflict", `machine ${machine.id} is at version ${machine.instance_id}, not ${version}`, {
    facts: { current_version: machine.instance_id },
    hint: "read the machine again, and send its instance_id as current_version",
  });
}
