/** Limits of rules and notifications. Each comment says what happens when the limit is reached. */
const SECOND = 1000;
const MINUTE = 60 * SECOND;
const KIB = 1024;

export const ALERT_LIMITS = {
  /** Size of a rule file. Past it: 400. */
  rule_file_bytes: 512 * KIB,
  /** Rule files of an organization. One more: 409 `limit_reached`. */
  rule_files_per_org: 100,
  /** Rules in a rule file. More: 400. */
  rules_per_file: 1000,
  /** Aliases in a YAML document, which can expand a small document to a huge one. More: 400. */
  yaml_aliases: 100,
  /** Length of a template. Past it: 400. */
  template_chars: 16 * KIB,
  /** Steps of one template expansion. Past it: the text contains the error instead. */
  template_steps: 100_000,
  /** Length of the result. Past it: the same. */
  template_result_chars: 64 * KIB,
  /** Alerts of one rule. Past it: the rule's evaluation fails, and its alerts end. */
  alerts_per_rule: 10_000,
  /** Default interval of a group. */
  default_interval_ms: MINUTE,
  /** Shortest interval of a group. Shorter: 400. */
  least_interval_ms: SECOND,
  /** Timeout of one query of a rule. Past it: the rule's evaluation fails. */
  query_ms: 30 * SECOND,
  /** Rule queries of all organizations that run in parallel; further ones wait. */
  queries_at_once: 4,
  /** Groups of one organization evaluated in parallel; further ones wait. */
  org_groups_at_once: 4,
  /** Rule queries of one organization that run in parallel; further ones wait. */
  org_queries_at_once: 2,
  /** Duration of a process's claim on a group without renewal. Then another process evaluates the group. */
  claim_ms: MINUTE,
  /** Poll interval for rule files changed by other processes. */
  look_ms: 15 * SECOND,
  /** Size of the file with routes and receivers. Past it: 400. */
  receivers_bytes: 256 * KIB,
  /** Silences that have not ended. One more: 409 `limit_reached`. */
  silences_per_org: 1000,
  /** Poll interval of alert groups, in addition to every change of an alert. */
  notify_ms: 5 * SECOND,
  /** Notifications of an organization sent in one round; further ones wait for the next. */
  notifications_at_once: 200,
  /** Timeout of one delivery. Past it: it is retried. */
  send_ms: 10 * SECOND,
  /** Delay before the first retry, doubled for each further one, up to the maximum. */
  retry_ms: 10 * SECOND,
  retry_max_ms: 10 * MINUTE,
  /** Time for which a delivery is retried. Past it: the notification is dropped, with its last error. */
  delivery_ms: 24 * 60 * MINUTE,
  /** Retention of listed notifications. */
  notifications_kept_ms: 7 * 24 * 60 * MINUTE,
  /** Interval at which firing alerts are sent to an Alertmanager again. */
  resend_ms: MINUTE,
  /** Time for which a resolved alert is kept, so that its receivers are notified. */
  resolved_kept_ms: 15 * MINUTE,
} as const;
