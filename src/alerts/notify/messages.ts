/** Request bodies for each kind of receiver. */
import { isoTime } from "#core/clock.ts";
import type { LabelMap } from "../rules/types.ts";
import type { Integration, Message, NotifiedAlert } from "./types.ts";

const ZERO_TIME = "0001-01-01T00:00:00Z";

/** Labels that all alerts have in common. */
function common(maps: readonly LabelMap[]): LabelMap {
  const [first = {}, ...others] = maps;
  return Object.fromEntries(
    Object.entries(first).filter(([name, value]) => others.every((one) => one[name] === value)),
  );
}

const statusOf = ({ alerts }: Message): "firing" | "resolved" =>
  alerts.some(({ firing }) => firing) ? "firing" : "resolved";

/** Alertmanager's webhook payload, version 4. */
export function webhookBody(message: Message, max_alerts: number): object {
  const { receiver, group_key, group_labels, external_url, alerts } = message;
  const shown = max_alerts > 0 ? alerts.slice(0, max_alerts) : alerts;
  return {
    version: "4",
    groupKey: group_key,
    truncatedAlerts: alerts.length - shown.length,
    status: statusOf(message),
    receiver,
    groupLabels: group_labels,
    commonLabels: common(alerts.map(({ labels }) => labels)),
    commonAnnotations: common(alerts.map(({ annotations }) => annotations)),
    externalURL: external_url,
    alerts: shown.map((alert) => ({
      status: alert.firing ? "firing" : "resolved",
      labels: alert.labels,
      annotations: alert.annotations,
      startsAt: isoTime(alert.starts_at_ms),
      endsAt: alert.ends_at_ms === undefined ? ZERO_TIME : isoTime(alert.ends_at_ms),
      generatorURL: external_url,
      fingerprint: alert.fingerprint,
    })),
  };
}

export function titleOf(message: Message): string {
  const { alerts, group_labels } = message;
  const firing = alerts.filter((alert) => alert.firing).length;
  const head = firing > 0 ? `[FIRING:${firing}]` : "[RESOLVED]";
  const [only, ...others] = alerts;
  const name = group_labels["alertname"] ?? common(alerts.map(({ labels }) => labels))["alertname"] ?? "";
  const rest = Object.entries(group_labels).flatMap(([key, value]) => (key === "alertname" ? [] : [value]));
  const what = only && others.length === 0 ? (only.annotations["summary"] ?? "") : rest.join(" ");
  return [head, name, what]
    .filter((text) => text !== "")
    .join(" ")
    .slice(0, 250);
}

const alertText = ({ firing, labels, annotations }: NotifiedAlert): string =>
  [
    `${firing ? "FIRING" : "RESOLVED"} ${labels["alertname"]}: ${annotations["summary"] ?? ""}`.trimEnd(),
    ...Object.entries(labels).flatMap(([name, value]) => (name === "alertname" ? [] : [`  ${name}: ${value}`])),
    ...(annotations["description"] ? [`  ${annotations["description"]}`] : []),
  ].join("\n");

/** Alerts that are listed; further ones are counted. */
const MOST_WRITTEN = 50;

export function textOf({ alerts, external_url }: Message): string {
  const more = alerts.length - MOST_WRITTEN;
  return [
    ...alerts.slice(0, MOST_WRITTEN).map(alertText),
    ...(more > 0 ? [`and ${more} more`] : []),
    ...(external_url === "" ? [] : [external_url]),
  ].join("\n\n");
}

/** The body for Slack and compatible webhooks (Mattermost, Rocket.Chat, Discord's /slack). */
export const slackBody = (message: Message, { channel }: Extract<Integration, { kind: "slack" }>): object => ({
  ...(channel === undefined ? {} : { channel }),
  username: "Hangar",
  attachments: [
    {
      title: titleOf(message),
      ...(message.external_url === "" ? {} : { title_link: message.external_url }),
      fallback: titleOf(message),
      text: textOf(message),
      color: statusOf(message) === "firing" ? "danger" : "good",
    },
  ],
});

/** ntfy's JSON, which is posted to the server's root and contains the topic. */
export const ntfyBody = (message: Message, { url, priority }: Extract<Integration, { kind: "ntfy" }>): object => ({
  topic: new URL(url).pathname.slice(1),
  title: titleOf(message),
  message: textOf(message).slice(0, 4000),
  tags: [statusOf(message) === "firing" ? "rotating_light" : "white_check_mark"],
  ...(priority === undefined ? {} : { priority }),
  ...(message.external_url === "" ? {} : { click: message.external_url }),
});

/** Alertmanager's API, version 2. A firing alert resolves by itself unless it is sent again. */
export const alertmanagerBody = (
  alerts: readonly NotifiedAlert[],
  ends_at_ms: number,
  external_url: string,
): object[] =>
  alerts.map((alert) => ({
    labels: alert.labels,
    annotations: alert.annotations,
    startsAt: isoTime(alert.starts_at_ms),
    endsAt: isoTime(alert.ends_at_ms ?? ends_at_ms),
    generatorURL: external_url,
  }));
