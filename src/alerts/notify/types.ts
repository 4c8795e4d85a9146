import type { LabelMap } from "../rules/types.ts";
import type { Matchers } from "./matchers.ts";

/** A place that messages are sent to. */
export type Integration =
  | { kind: "webhook"; url: string; send_resolved: boolean; max_alerts: number; token?: string }
  | { kind: "slack"; url: string; send_resolved: boolean; channel?: string }
  | { kind: "ntfy"; url: string; send_resolved: boolean; token?: string; priority?: number }
  | ({ kind: "email"; send_resolved: boolean } & EmailConfig);

export interface EmailConfig {
  to: readonly string[];
  from: string;
  host: string;
  port: number;
  username?: string;
  password?: string;
  /** Fails when the server offers no STARTTLS. */
  require_tls: boolean;
}

export interface Receiver {
  name: string;
  integrations: readonly Integration[];
}

/** Which alerts go to which receiver, and how they are grouped. */
export interface Route {
  receiver: string;
  matchers: Matchers;
  /** Undefined: by all labels. */
  group_by: readonly string[] | undefined;
  group_wait_ms: number;
  group_interval_ms: number;
  repeat_interval_ms: number;
  /** The routes after it are tried as well. */
  continues: boolean;
  routes: readonly Route[];
}

/** Alerts that match `source` inhibit those that match `target` and have equal values of the labels in `equal`. */
export interface InhibitRule {
  source: Matchers;
  target: Matchers;
  equal: readonly string[];
}

export interface NotificationConfig {
  route: Route | undefined;
  receivers: readonly Receiver[];
  inhibit_rules: readonly InhibitRule[];
  /** Addresses of Alertmanagers, which get all alerts. */
  alertmanagers: readonly { url: string; token?: string }[];
}

export interface Silence {
  id: string;
  org_id: string;
  matchers: string[];
  starts_at: number;
  ends_at: number;
  created_by: string;
  comment: string;
  updated_at: number;
}

/** An alert as notifications see it. */
export interface NotifiedAlert {
  fingerprint: string;
  labels: LabelMap;
  annotations: LabelMap;
  firing: boolean;
  starts_at_ms: number;
  ends_at_ms: number | undefined;
}

/** What is sent: the alerts of one group. */
export interface Message {
  receiver: string;
  group_key: string;
  group_labels: LabelMap;
  alerts: readonly NotifiedAlert[];
  external_url: string;
}

/** A message on its way to one integration; stored before it is sent. */
export interface Notification {
  id: string;
  org_id: string;
  receiver: string;
  /** Index of the receiver's integration. */
  integration: number;
  group_key: string;
  /** A Message as JSON. */
  body: string;
  created_at: number;
  attempts: number;
  /** Null once it is delivered or has failed. */
  retry_at: number | null;
  last_error: string | null;
  delivered_at: number | null;
}
