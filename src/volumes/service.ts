import type { AppRange } from "#apps/store.ts";
import type { ErrorCode } from "#core/error-catalogue.ts";
import { fail } from "#core/errors.ts";
import type { Ids } from "#core/ids.ts";
import type { CreateVolumeInput, Owner, VolumeParts } from "./inputs.ts";
import { VOLUME_LIMITS } from "./limits.ts";
import { type Origin, originOf } from "./origin.ts";
import { placeVolume } from "./placement.ts";
import { refuseAttached, refuseInsert, refuseName, refuseShrinking, refuseState } from "./rules.ts";
import { blank } from "./snapshots.ts";
import type { UniqueZone, VolumeFilter } from "./store.ts";
import type { Volume } from "./types.ts";
import { queued, transition } from "./writer.ts";

/** The rules about volumes, without HTTP, SQL or disk: those come in through `parts`. */
export class VolumeService {
  readonly #parts: VolumeParts;

  constructor(parts: VolumeParts) {
    this.#parts = parts;
  }

  async get(app_id: string, id: string): Promise<Volume> {
    const volume = await this.#parts.store.find(id);
    if (!volume || volume.app_id !== app_id) fail("not_found", `volume not found: ${id}`);
    return volume;
  }

  async list(app_id: string, filter: VolumeFilter): Promise<Volume[]> {
    return await this.#parts.store.list(app_id, filter);
  }

  async count(app_id: string): Promise<number> {
    return await this.#parts.store.count(app_id);
  }

  async counts(range: AppRange): Promise<ReadonlyMap<string, number>> {
    return await this.#parts.store.counts(range);
  }

  /** Returns when it is created; one restored from a snapshot returns at once, as `restoring`. */
  async create(owner: Owner, input: CreateVolumeInput, ids: Ids): Promise<Volume> {
    const { store, executor } = this.#parts;
    refuseName(input.name);
    const id = `vol_${ids.short()}`;
    const origin = await originOf(this.#parts, owner, input, id, ids);
    const operation_id = ids.ulid();
    const volume = await this.#insert(owner, input, { id, origin, operation_id });
    executor.wake(id);
    if (origin.kind === "restore") return volume;
    await executor.ended(id, operation_id);
    const made = (await store.find(id)) ?? volume;
    if (made.state === "destroyed") broken(made, "the volume could not be made");
    return made;
  }

  /** Warnings about request fields that differ from the result. */
  warnings({ region }: CreateVolumeInput): string[] {
    return this.#parts.hosts.regionWarnings(region);
  }

  async update(
    id: string,
    input: { auto_backup_enabled?: boolean | undefined; snapshot_retention?: number | undefined },
  ): Promise<Volume> {
    const { writer, clock } = this.#parts;
    return await writer.change(id, ({ volume }) => {
      refuseState(volume, volume.state !== "destroyed", "changed");
      const auto_backup_enabled = input.auto_backup_enabled ?? volume.auto_backup_enabled;
      const next = auto_backup_enabled ? (volume.next_backup_at ?? clock.now() + VOLUME_LIMITS.backup_every_ms) : null;
      const snapshot_retention = input.snapshot_retention ?? volume.snapshot_retention;
      return { set: { auto_backup_enabled, next_backup_at: next, snapshot_retention } };
    });
  }

  /** Grows a volume, never shrinks it. Returns when it has grown, or will after a restart. */
  async extend(id: string, size_gb: number, ids: Ids): Promise<{ volume: Volume; needs_restart: boolean }> {
    const { writer, executor, store } = this.#parts;
    let operation_id: string | undefined;
    await writer.change(id, (work) => {
      const { volume } = work;
      refuseState(volume, volume.state === "created" || volume.state === "extending", "extended");
      refuseShrinking(volume, size_gb);
      if (size_gb === volume.size_gb) return undefined;
      if (volume.state === "extending") refuseState(volume, false, "extended");
      const operation = queued(work, "extend", { from_gb: volume.size_gb }, ids);
      operation_id = operation.id;
      return { set: { state: transition(volume, "extend"), size_gb, error: null }, add_operations: [operation] };
    });
    executor.wake(id);
    const over = operation_id === undefined || (await executor.ended(id, operation_id));
    const volume = (await store.find(id)) ?? fail("not_found", `volume not found: ${id}`);
    if (volume.size_gb < size_gb) broken(volume, "the volume could not be extended");
    return { volume, needs_restart: over ? volume.needs_restart : volume.attached_machine_id !== null };
  }

  /**
   * Moves it to another host through a snapshot. The caller ensures that nothing has it open, and a start waits for it
   * (`migrate`). Returns once it is recorded; idempotent.
   */
  async move(id: string, host_id: string, ids: Ids): Promise<Volume> {
    const { writer, hosts, keys, clock, executor } = this.#parts;
    const { region, zone } = await hosts.find(host_id);
    const snapshot_id = `vs_${ids.short()}`;
    const volume = await writer.change(id, (work) => {
      const { volume: now, operations } = work;
      if (now.host_id === host_id || now.state === "moving" || now.state === "restoring") return undefined;
      refuseState(now, now.state === "created" && !operations.some((one) => one.host_id === now.host_id), "moved");
      const sealed_key = keys.forSnapshot(snapshot_id, now);
      return {
        set: { state: transition(now, "move"), error: null },
        add_operations: [queued(work, "move", { snapshot_id, to: { host_id, region, zone } }, ids)],
        add_snapshots: [blank(now, { id: snapshot_id, kind: "on_demand", now: clock.now(), sealed_key })],
      };
    });
    executor.wake(id);
    return volume;
  }

  /**
   * Deletes a volume, which can be restored for a while unless it was never complete. If its machine is being destroyed
   * it is deleted at once, and its data stays until the machine is gone.
   */
  async delete(id: string): Promise<Volume> {
    const { store, writer, clock, undelete_ms, executor } = this.#parts;
    const detaching = await store.detaching(id);
    const volume = await writer.change(id, ({ volume: now }) => {
      refuseState(now, now.state !== "destroyed", "deleted");
      if (!detaching) refuseAttached(now);
      refuseState(now, !["creating", "extending", "moving"].includes(now.state), "deleted");
      const at = clock.now();
      return {
        set: {
          state: transition(now, "delete"),
          deleted_at: at,
          purge_at: now.state === "created" ? at + undelete_ms : at,
          next_backup_at: null,
          needs_restart: false,
        },
        unfill: true,
        only_detached: true,
      };
    });
    executor.wake(id);
    return volume;
  }

  async undelete(id: string): Promise<Volume> {
    const { writer, clock } = this.#parts;
    return await writer.change(id, ({ volume }) => {
      refuseState(volume, volume.state === "destroyed", "taken back");
      const restorable = volume.purge_at !== null && volume.purge_at > clock.now() && volume.error === null;
      if (!restorable) {
        fail("not_found", `the data of volume ${id} was deleted`, { hint: "restore one of its snapshots" });
      }
      const next_backup_at = volume.auto_backup_enabled ? clock.now() + VOLUME_LIMITS.backup_every_ms : null;
      return { set: { state: transition(volume, "undelete"), deleted_at: null, purge_at: null, next_backup_at } };
    });
  }

  /** For an app that is being deleted, after its machines. */
  async deleteAll(app_id: string): Promise<void> {
    for (const { id } of await this.list(app_id, {})) await this.delete(id);
  }

  async #insert(
    owner: Owner,
    input: CreateVolumeInput,
    { id, origin, operation_id }: { id: string; origin: Origin; operation_id: string },
  ): Promise<Volume> {
    const { store } = this.#parts;
    const unique_zone = (input.require_unique_zone ?? true) && (input.unique_zone_app_wide ? "app" : "name");
    const { kind, payload, source } = origin;
    // Chooses a host again when another volume of the name took the zone meanwhile.
    for (let race = 0; race < VOLUME_LIMITS.write_races; race++) {
      const place = await this.#place(owner, input, origin, unique_zone);
      const volume = this.#blank(owner, input, origin, { id, ...place });
      const { host_id } = place;
      const operation = { id: operation_id, volume_id: id, host_id, position: 1, kind, payload, tries: 0 };
      const result = await store.insert(
        { volume, add_operations: [operation] },
        { limit: VOLUME_LIMITS.volumes_per_org, unique_zone, ...(source ? { source } : {}) },
      );
      if (result === "inserted") return volume;
      // The same request again, after a crash between write and response.
      if (result === "exists") return await this.get(owner.app_id, id);
      if (result !== "zone_taken") refuseInsert(result, owner.app_name);
    }
    fail("conflict", "concurrent requests used the free capacity of all zones; try again", { retry_after_s: 1 });
  }

  async #place(
    { app_id }: Owner,
    { name, region, compute }: CreateVolumeInput,
    origin: Origin,
    unique_zone: UniqueZone,
  ): Promise<Pick<Volume, "region" | "zone" | "host_id">> {
    const { store, hosts } = this.#parts;
    const host = await placeVolume(hosts, {
      name,
      region: region ?? origin.region,
      cpus: compute?.cpus ?? 0,
      memory_mb: compute?.memory_mb ?? 0,
      taken_zones: unique_zone ? await store.zones(app_id, unique_zone === "name" ? name : undefined) : [],
      unique_zone,
      ...(origin.host_id ? { host_id: origin.host_id } : {}),
    });
    return { region: region ?? origin.region ?? host.region, zone: host.zone, host_id: host.id };
  }

  #blank(
    owner: Owner,
    input: CreateVolumeInput,
    { state, size_gb, encryption, sealed_key, base_snapshot_id }: Origin,
    place: Pick<Volume, "id" | "region" | "zone" | "host_id">,
  ): Volume {
    const now = this.#parts.clock.now();
    const { auto_backup_enabled = true, snapshot_retention = VOLUME_LIMITS.retention_days_default } = input;
    return {
      ...place,
      ...owner,
      name: input.name,
      fstype: input.fstype || "ext4",
      encryption,
      sealed_key,
      created_at: now,
      revision: 1,
      updated_at: now,
      state,
      size_gb,
      attached_machine_id: null,
      needs_restart: false,
      auto_backup_enabled,
      snapshot_retention,
      next_backup_at: auto_backup_enabled ? now + VOLUME_LIMITS.backup_every_ms : null,
      base_snapshot_id,
      deleted_at: null,
      purge_at: null,
      error: null,
      usage: null,
    };
  }
}

/** An operation that a request waited for failed and left nothing. */
function broken({ error }: Volume, what: string): never {
  const reason = error ?? "the reason is in the log";
  const code: ErrorCode = /ENOSPC|No space left/i.test(reason) ? "storage_full" : "storage_failed";
  fail(code, `${what}: ${reason}`);
}
