/** Limits of the identity module. Each comment says what happens when the limit is reached. */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const HOUR = 60 * MINUTE;
const DAY = 24 * HOUR;

export const IDENTITY_LIMITS = {
  /** Length of a token's audience. Past it: 400. */
  audience_chars: 1024,
  /** Token requests of one machine per second, and burst. One more: 429. */
  tokens_per_second: 20,

  /** Time for which a key signs, until its successor does. */
  key_signs_ms: 30 * DAY,
  /** Time a new key is published before it signs, so that verifiers with a cached list have fetched it. */
  key_published_before_ms: HOUR,
  /** Time a key is published after it stopped signing: twice the longest lifetime of a token. */
  key_published_after_ms: 2 * HOUR,
  /** Cache time of an organization's keys. */
  key_cache_ms: MINUTE,
  /** Organizations with cached keys; the least recently used is dropped. */
  key_cache_orgs: 1000,
  /** Time for which verifiers may cache the list of keys. */
  jwks_cache_s: 300,

  /** Connections to one machine's socket. One more is closed at once. */
  socket_connections: 128,
  /** Longest socket path that the system accepts. */
  socket_path_bytes: 107,

  /** Port of the gateway on every private network, at `_api.internal`. */
  network_port: 4280,
  /** Connections to it from one network. One more is closed at once. */
  network_connections: 1024,
} as const;
