/** Limits of the identity module. Each comment says what happens when the limit is reached. */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export const IDENTITY_LIMITS = {
  /** An audience that a token may be asked for. Past it: 400. */
  audience_chars: 1024,
  /** Tokens that one machine may ask for in a second, and at once. One more: 429. */
  tokens_per_second: 20,

  /** A key signs for this long; then a new one does. */
  key_signs_ms: 30 * DAY,
  /** A new key is published this long before it signs, so that who keeps the old list has fetched the new one. */
  key_published_before_ms: HOUR,
  /** A key that signs no more is published this long after: twice the longest life of a token. */
  key_published_after_ms: 2 * HOUR,
  /** What is known about an organization's keys is read again after this. */
  key_cache_ms: MINUTE,
  /** Organizations whose keys are kept in memory; the one not asked for longest goes. */
  key_cache_orgs: 1000,
  /** Verifiers may keep the list of keys for this long. */
  jwks_cache_s: 300,

  /** Connections to one machine's socket. One more is closed at once. */
  socket_connections: 128,
  /** The longest path of a socket that the system takes. */
  socket_path_bytes: 107,

  /** Where the gateway answers on every private network, at the address of `_api.internal`. */
  network_port: 4280,
  /** Connections to it from one network. One more is closed at once. */
  network_connections: 1024,
} as const;
