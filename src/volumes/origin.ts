import { fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import type { VolumeDisk } from "./disk.ts";
import type { CreateVolumeInput, Owner, VolumeParts } from "./inputs.ts";
import { VOLUME_LIMITS } from "./limits.ts";
import { bad } from "./rules.ts";
import type { VolumeState } from "./states.ts";
import type { Encryption, OperationPayload } from "./types.ts";

/** The source of a new volume, and its consequences. */
export interface Origin {
  kind: "create" | "restore" | "fork";
  state: VolumeState;
  payload: OperationPayload;
  source?: { snapshot_id?: string; volume_id?: string };
  size_gb: number;
  encryption: Encryption | null;
  sealed_key: Uint8Array | null;
  base_snapshot_id: string | null;
  /** Default region. */
  region?: string;
  host_id?: string;
}

export async function originOf(
  parts: VolumeParts,
  owner: Owner,
  input: CreateVolumeInput,
  id: string,
  ids: Ids,
): Promise<Origin> {
  if (input.snapshot_id && input.source_volume_id) {
    bad("body.source_volume_id", "cannot be together with snapshot_id: a volume is made from one thing");
  }
  if (input.snapshot_id) return await fromSnapshot(parts, owner, { ...input, snapshot_id: input.snapshot_id }, id);
  if (input.source_volume_id) return await fromVolume(parts, owner, { ...input, source: input.source_volume_id }, id);
  const encryption = await encryptionFor(parts.disk, input.encrypted ?? true);
  return {
    kind: "create",
    state: "creating",
    payload: {},
    size_gb: input.size_gb ?? VOLUME_LIMITS.size_gb_default,
    encryption,
    sealed_key: encryption === null ? null : parts.keys.fresh(id, ids),
    base_snapshot_id: null,
  };
}

async function fromSnapshot(
  { store, keys }: VolumeParts,
  { app_id }: Owner,
  input: CreateVolumeInput & { snapshot_id: string },
  id: string,
): Promise<Origin> {
  if (!input.region) bad("body.region", "is required when a volume is made from a snapshot");
  const snapshot = await store.findSnapshot(input.snapshot_id);
  // A snapshot of another app looks like a missing one.
  if (!snapshot || snapshot.app_id !== app_id) fail("not_found", `snapshot not found: ${input.snapshot_id}`);
  if (snapshot.status !== "created") {
    fail(
      "volume_not_ready",
      `snapshot ${snapshot.id} is ${snapshot.status}${snapshot.message && `: ${snapshot.message}`}`,
    );
  }
  const { volume_gb, encryption } = snapshot;
  refuseOtherKind(input, { size_gb: volume_gb, encryption, what: `snapshot ${snapshot.id}` });
  return {
    kind: "restore",
    state: "restoring",
    payload: { snapshot_id: snapshot.id },
    source: { snapshot_id: snapshot.id },
    size_gb: input.size_gb ?? volume_gb,
    encryption,
    sealed_key: keys.fromSnapshot(snapshot, id),
    base_snapshot_id: snapshot.id,
  };
}

async function fromVolume(
  { store, keys, hosts }: VolumeParts,
  { app_id }: Owner,
  input: CreateVolumeInput & { source: string },
  id: string,
): Promise<Origin> {
  const source = await store.find(input.source);
  if (!source || source.app_id !== app_id) fail("not_found", `volume not found: ${input.source}`);
  if (source.state !== "created" && source.state !== "extending") {
    fail("volume_not_ready", `volume ${source.id} cannot be forked: it is ${source.state}`);
  }
  const { size_gb, encryption, region, host_id, base_snapshot_id } = source;
  refuseOtherKind(input, { size_gb, encryption, what: `volume ${source.id}` });
  return {
    kind: "fork",
    state: "hydrating",
    payload: { source_volume_id: source.id },
    source: { volume_id: source.id },
    size_gb: input.size_gb ?? size_gb,
    encryption,
    sealed_key: keys.fromVolume(source, id),
    base_snapshot_id,
    region,
    // The hosts of one box share its disk; remote ones have their own.
    ...(hosts.own.includes(host_id) ? {} : { host_id }),
  };
}

/** The source decides the minimum size and the encryption. */
function refuseOtherKind(
  { size_gb, encrypted }: CreateVolumeInput,
  source: { size_gb: number; encryption: Encryption | null; what: string },
): void {
  if (size_gb !== undefined && size_gb < source.size_gb) {
    bad("body.size_gb", `must be at least ${source.size_gb}, the size of ${source.what}`);
  }
  if (encrypted !== undefined && encrypted !== (source.encryption !== null)) {
    bad("body.encrypted", `cannot be ${encrypted}: ${source.what} is ${source.encryption ? "" : "not "}encrypted`);
  }
}

/** The encryption of a blank volume. Fails rather than storing plaintext as encrypted. */
async function encryptionFor(disk: VolumeDisk, encrypted: boolean): Promise<Encryption | null> {
  if (!encrypted) return null;
  const { encryption, encryption_reason } = await disk.capabilities();
  return (
    encryption ??
    fail("encryption_unavailable", `volume encryption is not available on this host: ${encryption_reason}`, {
      hint: "install cryptsetup or gocryptfs, or pass encrypted: false",
    })
  );
}
