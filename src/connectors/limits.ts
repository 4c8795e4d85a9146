/** Limits of the connectors module. Each comment says what happens when the limit is reached. */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;

export const CONNECTOR_LIMITS = {
  /** Connectors of one organization. One more: 422 `limit_reached`. */
  connections_per_org: 500,
  /** Endpoints in one list of a policy. Past it: 400. */
  policy_endpoints: 500,
  /** Labels in a policy. Past it: 400. */
  policy_labels: 64,
  /** Length of an endpoint, label, prefix or name. Past it: 400. */
  policy_text_chars: 1024,
  /** Length of a stored key, token or secret. Past it: 400. */
  credential_chars: 16_384,

  /** Decrypted credentials cached in memory; the oldest is dropped. */
  credentials_open: 1000,

  /** Calls of one connector in flight. One more: 503 `overloaded`. */
  calls_in_flight: 256,
  /** Connections to one provider; further requests wait. */
  upstream_connections: 64,
  /** Providers with open connections. One more: 503 `overloaded`. */
  upstream_origins: 1000,
  /** Timeout of connecting to the provider. Past it: 504. */
  connect_timeout_ms: 10 * SECOND,
  /** Timeout of the provider's response headers. Past it: 504. */
  answer_timeout_ms: 10 * MINUTE,
  /** Idle timeout of a provider's response or a caller's body. Past it: closed. */
  silence_timeout_ms: 10 * MINUTE,
  /** Size of the provider's response headers. Past it: 502. */
  upstream_header_bytes: 64 * 1024,
  /** Timeout of a connector test. Past it the test fails. */
  test_timeout_ms: 15 * SECOND,

  /** Lifetime of a pending authorization. Past it: 400. */
  oauth_state_ms: 15 * MINUTE,
  /** Pending authorizations per organization. One more: 422 `limit_reached`. */
  oauth_states_per_org: 100,
  /** A token that expires within this time is refreshed before use. */
  oauth_refresh_ms: 5 * MINUTE,
  /** Timeout of a provider's token endpoint. Past it: 502. */
  oauth_timeout_ms: 15 * SECOND,
  /** Size of its response. Past it: 502. */
  oauth_answer_bytes: 256 * 1024,

  /** Audit and usage entries are batched for this long; a crash loses at most these. */
  audit_flush_ms: SECOND,
  /** Entries waiting to be written. One more is counted, not stored. */
  audit_waiting: 10_000,
  /** Entries per write. */
  audit_batch: 500,
  /** Retention of audit entries. */
  audit_kept_ms: 30 * DAY,
} as const;
