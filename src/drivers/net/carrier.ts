import type { RemotePeer } from "#network/overlay.ts";

export interface CarrierParts {
  device: string;
  node_id: string;
  /** This host's address on the underlay network. */
  underlay: string;
  mtu: number;
  /** Secret shared by all processes of the platform. */
  key: Uint8Array;
}

/** Carries packets between hosts. */
export interface Carrier {
  /** Whether the device exists and is configured. */
  stands(): Promise<boolean>;
  make(): Promise<void>;
  /** Sets the list of remote peers. */
  keep(ends: readonly RemotePeer[]): Promise<void>;
  /** Firewall rules for its own port. */
  knocks(ends: readonly RemotePeer[]): string[];
  /** Whether routes name a neighbour, or the device knows its peers. */
  neighbours: boolean;
}
