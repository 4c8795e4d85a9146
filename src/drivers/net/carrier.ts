import type { RemotePeer } from "#network/overlay.ts";

export interface CarrierParts {
  device: string;
  node_id: string;
  /** This box's address, as other boxes see it. */
  underlay: string;
  mtu: number;
  /** What all processes of the platform know and nobody else. */
  key: Uint8Array;
}

/** How packets travel between boxes. */
export interface Carrier {
  /** Whether the device is there and as it should be. */
  stands(): Promise<boolean>;
  make(): Promise<void>;
  /** The other ends are exactly these. */
  keep(ends: readonly RemotePeer[]): Promise<void>;
  /** Rules for what arrives at its own port. */
  knocks(ends: readonly RemotePeer[]): string[];
  /** Whether a route names the neighbour, or the device knows by itself who has what. */
  neighbours: boolean;
}
