/** Bounds of the network room, by name. What happens at the bound is written beside it. */
export const NETWORK_LIMITS = {
  /** Addresses of one app. One more: 422 `limit_reached`. */
  addresses_per_app: 32,
  /** Addresses that are tried before it is said that none is free. */
  address_tries: 64,
} as const;
