/** Limits of the network module. Each comment says what happens when the limit is reached. */
export const NETWORK_LIMITS = {
  /** Addresses of one app. One more: 422 `limit_reached`. */
  addresses_per_app: 32,
  /** Addresses tried before allocation fails because none is free. */
  address_tries: 64,
  /** Interval at which a process publishes its overlay address and reads those of its peers; notifications arrive sooner. */
  peer_beat_ms: 10_000,
  /** A peer without a heartbeat for this long loses its routes until the next one. */
  peer_forget_ms: 3_600_000,
  /** Changes of the overlay network within this time are applied together. */
  overlay_gather_ms: 50,
  /** Timeout of an upstream DNS server. Past it the next one is tried. */
  dns_forward_ms: 3000,
  /** Forwarded DNS queries in flight. One more: SERVFAIL. */
  dns_forwarded: 256,
  /** Idle timeout of a DNS connection over TCP. */
  dns_idle_ms: 10_000,
  /** DNS connections over TCP per network. One more is closed at once. */
  dns_connections: 256,
  /**
   * Tracked connections (conntrack) that one machine may have begun and not ended. One more is dropped, and counted in
   * `svc_instance_connections_refused_count`.
   */
  connections_per_machine: 4096,
  /** Minimum and maximum time that an address of an allowed DNS name stays open after a lookup. */
  egress_name_min_s: 60,
  egress_name_max_s: 3600,
  /** Open addresses per allowed DNS name and machine. One more stays closed. */
  egress_name_addresses: 1024,
  /** Idle timeout of a connection to an allowed DNS name after the name's address has expired. */
  egress_idle_s: 3600,
} as const;
