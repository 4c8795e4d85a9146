import { Hardware } from "#hosts/compute-schema.ts";
import { acts, warned } from "#http/field-support.ts";
import { Type } from "#http/schema.ts";
import { VOLUME_LIMITS } from "./limits.ts";
import { STATES } from "./states.ts";
import { ENCRYPTIONS } from "./types.ts";

const text = Type.String();
const flag = Type.Boolean();
const nonNegativeInteger = Type.Integer({ minimum: 0 });
const { size_gb_min, size_gb_max, retention_days_min, retention_days_max, retention_days_default } = VOLUME_LIMITS;
const size = Type.Integer({ minimum: size_gb_min, maximum: size_gb_max });
const retention = acts(
  Type.Integer({ minimum: retention_days_min, maximum: retention_days_max }),
  `Retention of snapshots in days; ${retention_days_default} by default.`,
);

const Compute = Type.Partial(
  Type.Object({
    ...Hardware,
    cpus: acts(nonNegativeInteger, "Place it on a host with this much free capacity."),
    memory_mb: acts(nonNegativeInteger, "Place it on a host with this much free memory."),
    persist_rootfs: warned(text, "it is for the config of the machine"),
  }),
);

export const CreateVolume = Type.Object({
  name: acts(text, "Name; several volumes may have the same."),
  region: Type.Optional(acts(text, "Region (default: the default region); required with a snapshot.")),
  size_gb: Type.Optional(
    acts(
      size,
      `Size in GB; ${VOLUME_LIMITS.size_gb_default} by default, for a restore or a fork the size of its source.`,
    ),
  ),
  fstype: Type.Optional(acts(Type.Union([Type.Literal("ext4"), Type.Literal("")]), "`ext4`.")),
  encrypted: Type.Optional(
    acts(flag, "Encrypt the volume; true by default. Refused if the host supports no encryption."),
  ),
  auto_backup_enabled: Type.Optional(acts(flag, "Daily snapshots; true by default.")),
  snapshot_retention: Type.Optional(retention),
  require_unique_zone: Type.Optional(
    acts(flag, "Place it in a zone without another volume of this name; true by default."),
  ),
  unique_zone_app_wide: Type.Optional(
    acts(flag, "With require_unique_zone: place it in a zone without any other volume of the app."),
  ),
  machines_only: Type.Optional(warned(flag, "nothing but machines can mount a volume")),
  snapshot_id: Type.Optional(acts(text, "Restore this snapshot.")),
  source_volume_id: Type.Optional(acts(text, "Fork this volume.")),
  compute: Type.Optional(
    acts(Compute, "Size of the machine that will mount the volume; the volume is placed on a host where it fits."),
  ),
  compute_image: Type.Optional(warned(text, "images are fetched when a machine starts")),
});

export const UpdateVolume = Type.Object({
  auto_backup_enabled: Type.Optional(acts(flag, "Daily snapshots.")),
  snapshot_retention: Type.Optional(retention),
});

export const ExtendVolume = Type.Object({ size_gb: acts(size, "New size in GB.") });

export const ListQuery = Type.Object({
  summary: Type.Optional(Type.Boolean({ description: "Omit file system usage, which is faster." })),
  include_deleted: Type.Optional(Type.Boolean({ description: "Also deleted volumes that can still be restored." })),
});

const Progress = Type.Object({ done_bytes: nonNegativeInteger, total_bytes: nonNegativeInteger });

export const VolumeResponse = Type.Object(
  {
    id: text,
    name: text,
    state: Type.String({
      description: `${STATES.map((state) => `\`${state}\``).join(", ")}. A destroyed one can be restored until \`recoverable_until\`.`,
    }),
    size_gb: Type.Integer(),
    region: text,
    zone: text,
    encrypted: flag,
    encryption: Type.Optional(Type.String({ description: `How, when it is: ${ENCRYPTIONS.join(", ")}.` })),
    attached_machine_id: Type.Union([text, Type.Null()]),
    attached_alloc_id: Type.Union([text, Type.Null()]),
    created_at: text,
    blocks: Type.Integer({ description: "Total blocks; 0 in responses to create, update and delete." }),
    block_size: Type.Integer(),
    blocks_free: Type.Integer(),
    blocks_avail: Type.Integer(),
    bytes_total: Type.Integer(),
    bytes_used: Type.Integer(),
    fstype: text,
    snapshot_retention: Type.Integer(),
    auto_backup_enabled: flag,
    needs_restart: Type.Boolean({ description: "It has grown; its machine sees the new size after a restart." }),
    host_dedication_key: text,
    host_status: text,
    error: Type.Optional(Type.String({ description: "Why it failed." })),
    progress: Type.Optional(Progress),
    deleted_at: Type.Optional(text),
    recoverable_until: Type.Optional(text),
    warnings: Type.Optional(Type.Array(text, { description: "Of a create: fields without an effect." })),
  },
  { title: "Volume" },
);

export const VolumeList = Type.Array(VolumeResponse);
export const ExtendResponse = Type.Object({
  volume: VolumeResponse,
  needs_restart: Type.Boolean({ description: "The machine that runs on it sees the new size after a restart." }),
});

export const SnapshotResponse = Type.Object(
  {
    id: text,
    size: Type.Integer({ description: "Bytes of data in it, however they are stored." }),
    digest: Type.String({ description: "Digest of the content: equal digests mean equal bytes." }),
    created_at: text,
    retention_days: Type.Integer(),
    status: Type.String({ description: "`waiting`, `running`, `created` or `failed`." }),
    volume_id: text,
    volume_size: Type.Integer(),
    stored_bytes: Type.Integer({ description: "Newly stored bytes; the rest is shared with the previous snapshot." }),
    expires_at: text,
    kind: Type.String({ description: "`on_demand` or `daily`." }),
    message: Type.Optional(text),
    progress: Type.Optional(Progress),
  },
  { title: "VolumeSnapshot" },
);

export const SnapshotList = Type.Array(SnapshotResponse);

export const SnapshotRecord = Type.Object({
  Msg: Type.Object({
    backup: Type.Object({
      id: text,
      app_id: text,
      volume_id: text,
      state: text,
      type: text,
      message: text,
      created_at: text,
      updated_at: text,
      finished_at: Type.Union([text, Type.Null()]),
      graph_id: Type.String({ description: "The snapshot's id." }),
    }),
  }),
});

const bytes = Type.Integer({ description: "Bytes." });

export const DiskResponse = Type.Object({
  driver: text,
  encryption: Type.Union([text, Type.Null()]),
  encryption_reason: text,
  reflink: flag,
  reflink_reason: text,
  total_bytes: bytes,
  free_bytes: bytes,
  objects: Type.Object({ place: text, bytes, count: Type.Integer() }),
  volumes: Type.Array(
    Type.Object({
      id: text,
      name: text,
      app: text,
      state: text,
      size_bytes: bytes,
      taken_bytes: bytes,
      snapshots: Type.Integer(),
      snapshot_bytes: bytes,
    }),
  ),
});

export const CollectInput = Type.Object({
  apply: Type.Optional(Type.Boolean({ description: "Delete it; otherwise it is only listed." })),
  deleted: Type.Optional(Type.Boolean({ description: "Also deleted volumes that could still be restored." })),
});

export const Collected = Type.Object({
  applied: flag,
  bytes: bytes,
  waste: Type.Array(Type.Object({ kind: text, id: text, bytes, reason: text })),
});

export const Ok = Type.Object({ ok: flag });
