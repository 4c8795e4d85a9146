/** Bounds of the network room, by name. What happens at the bound is written beside it. */
export const NETWORK_LIMITS = {
  /** Addresses of one app. One more: 422 `limit_reached`. */
  addresses_per_app: 32,
  /** Addresses that are tried before it is said that none is free. */
  address_tries: 64,
  /** A process says this often where packets for it go, and looks where they go for the others; a word comes sooner. */
  peer_beat_ms: 10_000,
  /** A process that was not heard of for so long has no way to it any more; its next word brings it back. */
  peer_forget_ms: 3_600_000,
  /** What changes within this time is done together. */
  fabric_gather_ms: 50,
} as const;
