/** Limits of the connectors module. Each comment says what happens when the limit is reached. */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const DAY = 24 * 60 * MINUTE;

export const CONNECTOR_LIMITS = {
  /** Connectors of one organization. One more: 422 `limit_reached`. */
  connections_per_org: 500,
  /** Endpoints in one list of a policy. Past it: 400. */
  policy_endpoints: 500,
  /** Labels that a policy may ask for. Past it: 400. */
  policy_labels: 64,
  /** One endpoint, label, prefix or name. Past it: 400. */
  policy_text_chars: 1024,
  /** A key, token or secret that is kept. Past it: 400. */
  credential_chars: 16_384,

  /** Credentials that are kept open in memory; the oldest is opened anew when it is needed. */
  credentials_open: 1000,

  /** Requests of one connector that are being passed on. One more: 503 `overloaded`. */
  calls_in_flight: 256,
  /** Connections to one provider; requests wait for one. */
  upstream_connections: 64,
  /** Providers that connections are kept to. One more: 503 `overloaded`. */
  upstream_origins: 1000,
  /** Until a connection to the provider stands. Past it: 504. */
  connect_timeout_ms: 10 * SECOND,
  /** Until the provider begins to answer. Past it: 504. */
  answer_timeout_ms: 10 * MINUTE,
  /** A provider that falls silent in the middle of an answer, or a caller in the middle of a body, is cut off. */
  silence_timeout_ms: 10 * MINUTE,
  /** All headers of the provider's answer. Past it: 502. */
  upstream_header_bytes: 64 * 1024,
  /** How long a test of a connector may take. Past it the test says so. */
  test_timeout_ms: 15 * SECOND,

  /** Between an authorization's beginning and its end. Past it: 400, begin again. */
  oauth_state_ms: 15 * MINUTE,
  /** Authorizations begun and not finished, per organization. One more: 422 `limit_reached`. */
  oauth_states_per_org: 100,
  /** A token that ends within this time is renewed before it is used. */
  oauth_refresh_ms: 5 * MINUTE,
  /** Until a provider's token endpoint has answered. Past it: 502. */
  oauth_timeout_ms: 15 * SECOND,
  /** What is read of its answer. Past it: 502. */
  oauth_answer_bytes: 256 * 1024,

  /** Lines of audit and usage wait this long to be written together; a crash loses at most these. */
  audit_flush_ms: SECOND,
  /** Lines that wait to be written. One more is counted, not kept. */
  audit_waiting: 10_000,
  /** Lines in one write. */
  audit_batch: 500,
  /** A line is kept for this long. */
  audit_kept_ms: 30 * DAY,
} as const;
