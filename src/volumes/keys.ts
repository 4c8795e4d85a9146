import type { Ids } from "#core/ids.ts";
import type { Sealer } from "#core/sealer.ts";
import type { DiskVolume } from "./disk.ts";
import type { Snapshot, Volume } from "./types.ts";

const KEY_BYTES = 64;
const places = { volume: (id: string) => `volume:${id}`, snapshot: (id: string) => `volume-snapshot:${id}` };

/**
 * Each volume has its own key, sealed with the platform's and stored in its row: once that is deleted, remaining data
 * cannot be decrypted. Snapshots and forks have the same data, so they have the same key, sealed for themselves.
 */
export class VolumeKeys {
  readonly #sealer: Sealer;

  constructor(sealer: Sealer) {
    this.#sealer = sealer;
  }

  fresh(volume_id: string, ids: Ids): Uint8Array {
    return this.#sealer.seal(places.volume(volume_id), ids.bytes(KEY_BYTES));
  }

  forSnapshot(id: string, { id: volume_id, sealed_key }: Volume): Uint8Array | null {
    return this.#again(places.volume(volume_id), sealed_key, places.snapshot(id));
  }

  fromSnapshot({ id, sealed_key }: Snapshot, volume_id: string): Uint8Array | null {
    return this.#again(places.snapshot(id), sealed_key, places.volume(volume_id));
  }

  fromVolume({ id, sealed_key }: Volume, volume_id: string): Uint8Array | null {
    return this.#again(places.volume(id), sealed_key, places.volume(volume_id));
  }

  /** The volume with its key opened, for the disk. */
  open({ id, size_gb, fstype, encryption, sealed_key }: Volume): DiskVolume {
    const key = sealed_key && this.#sealer.open(places.volume(id), sealed_key);
    return { id, size_gb, fstype, encryption, key };
  }

  #again(from: string, sealed: Uint8Array | null, to: string): Uint8Array | null {
    return sealed && this.#sealer.seal(to, this.#sealer.open(from, sealed));
  }
}
