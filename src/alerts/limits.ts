/** Bounds of rules and notifications, with what happens at them. */
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
  /** Aliases in a YAML document, which may make a small one very large. More: 400. */
  yaml_aliases: 100,
  /** Length of a template. Past it: 400. */
  template_chars: 16 * KIB,
  /** Steps of one expansion of a template, and characters of its result. Past it: the text says so instead. */
  template_steps: 100_000,
  template_result_chars: 64 * KIB,
  /** Alerts that one rule may have. Past it: the rule's evaluation fails, and its alerts end. */
  alerts_per_rule: 10_000,
  /** Interval of a group that names none. */
  default_interval_ms: MINUTE,
  /** Shortest interval of a group. Shorter: 400. */
  least_interval_ms: SECOND,
  /** Time of one query of a rule. Past it: the rule's evaluation fails. */
  query_ms: 30 * SECOND,
  /** Groups that are evaluated at once. More wait. */
  groups_at_once: 4,
  /** How long a process keeps its claim on a group without renewing it. Then another one evaluates it. */
  claim_ms: MINUTE,
  /** How often rule files that other processes changed are read. */
  look_ms: 15 * SECOND,
  /** Size of the routes and receivers. Past it: 400. */
  receivers_bytes: 256 * KIB,
  /** Silences that have not ended. One more: 409 `limit_reached`. */
  silences_per_org: 1000,
  /** How often groups of alerts are looked at, beside every change of an alert. */
  notify_ms: 5 * SECOND,
  /** Messages of an organization that are sent in one round. More wait for the next one. */
  notifications_at_once: 200,
  /** Time of one delivery. Past it: it is tried again. */
  send_ms: 10 * SECOND,
  /** Delay before the second attempt, doubled with each, up to the longest. */
  retry_ms: 10 * SECOND,
  retry_max_ms: 10 * MINUTE,
  /** How long a message is tried to deliver. Past it: it is given up, with its last error. */
  delivery_ms: 24 * 60 * MINUTE,
  /** How long messages are listed. */
  notifications_kept_ms: 7 * 24 * 60 * MINUTE,
  /** How often an Alertmanager is told again of alerts that fire. */
  resend_ms: MINUTE,
  /** How long an alert is kept after it resolved, so that its receivers hear of it. */
  resolved_kept_ms: 15 * MINUTE,
} as const;
