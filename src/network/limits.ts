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
  /** How long a name server of the outside has for an answer. Past it the next one is asked. */
  dns_forward_ms: 3000,
  /** Questions to the outside that wait for an answer. One more: the asker is told that it failed. */
  dns_forwarded: 256,
  /** A connection for names on which nothing moves for this long is closed. */
  dns_idle_ms: 10_000,
  /** Connections for names to one network. One more is closed at once. */
  dns_connections: 256,
  /**
   * Tracked connections (conntrack) that one machine may have begun and not ended. One more is dropped, and counted in
   * `svc_instance_connections_refused_count`.
   */
  connections_per_machine: 4096,
  /** An address of an allowed DNS name is open at least and at most for so long after it was asked for. */
  egress_name_min_s: 60,
  egress_name_max_s: 3600,
  /** Addresses of one allowed name that are open to one machine at a time. One more stays closed. */
  egress_name_addresses: 1024,
  /** A connection to an allowed name on which nothing moves for so long is closed once the name's time is over. */
  egress_idle_s: 3600,
} as const;
