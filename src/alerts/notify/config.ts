/** Reads the routes and receivers of an organization, in Alertmanager's format. */
import { messageOf } from "#core/assert.ts";
import { durationOf } from "../yaml/duration.ts";
import { type Fields, type Path, readYaml, type YamlDocument } from "../yaml/yaml.ts";
import { type LabelMatcher, parseMatcher } from "./matchers.ts";
import type { InhibitRule, Integration, NotificationConfig, Receiver, Route } from "./types.ts";

const FILE: Fields = ["route", "receivers", "inhibit_rules", "alertmanagers"];
const ROUTE: Fields = [
  "receiver",
  "matchers",
  "match",
  "match_re",
  "group_by",
  "group_wait",
  "group_interval",
  "repeat_interval",
  "continue",
  "routes",
];
const KINDS: Record<string, { kind: Integration["kind"]; fields: Fields }> = {
  webhook_configs: { kind: "webhook", fields: ["url", "send_resolved", "max_alerts", "token"] },
  slack_configs: { kind: "slack", fields: ["api_url", "send_resolved", "channel"] },
  ntfy_configs: { kind: "ntfy", fields: ["url", "send_resolved", "token", "priority"] },
  email_configs: {
    kind: "email",
    fields: ["to", "from", "smarthost", "auth_username", "auth_password", "require_tls", "send_resolved"],
  },
};

const MOST_DEPTH = 20;
const MOST_ROUTES = 1000;

export interface ReadConfig {
  config: NotificationConfig;
  problems: string[];
}

export async function parseConfig(text: string): Promise<ReadConfig> {
  const document = await readYaml(text);
  const reader = new Reader(document);
  const config = document.problems.length === 0 ? reader.file(document.root) : NOTHING;
  return { config, problems: document.problems };
}

export const NOTHING: NotificationConfig = { route: undefined, receivers: [], inhibit_rules: [], alertmanagers: [] };
const DEFAULTS: Omit<Route, "receiver" | "matchers" | "continues" | "routes"> = {
  group_by: [],
  group_wait_ms: 30_000,
  group_interval_ms: 5 * 60_000,
  repeat_interval_ms: 4 * 3_600_000,
};

class Reader {
  readonly #document: YamlDocument;
  #routes = 0;
  #names = new Set<string>();

  constructor(document: YamlDocument) {
    this.#document = document;
  }

  file(root: unknown): NotificationConfig {
    const file = this.#document.table(root ?? {}, [], FILE);
    const receivers = this.#list(file, "receivers", [], (one, path) => this.#receiver(one, path));
    this.#names = new Set(receivers.map(({ name }) => name));
    if (this.#names.size < receivers.length) this.#document.problem(["receivers"], "a receiver's name is there twice");
    const route =
      file["route"] === undefined ? undefined : this.#route(file["route"], ["route"], { ...DEFAULTS, receiver: "" }, 0);
    if (route && route.matchers.length > 0)
      this.#document.problem(["route"], "the first route takes every alert: it has no matchers");
    if (receivers.length > 0 && !route) this.#document.problem([], "receivers need a route");
    return {
      route,
      receivers,
      inhibit_rules: this.#list(file, "inhibit_rules", [], (one, path) => this.#inhibit(one, path)),
      alertmanagers: this.#list(file, "alertmanagers", [], (one, path) => {
        const table = this.#document.table(one, path, ["url", "token"]);
        return { url: this.#url(table, "url", path), ...this.#optional(table, "token", path) };
      }),
    };
  }

  #list<T>(table: Record<string, unknown>, key: string, path: Path, read: (one: unknown, path: Path) => T): T[] {
    return this.#document.list(table[key], [...path, key]).map((one, at) => read(one, [...path, key, at]));
  }

  #text(table: Record<string, unknown>, key: string, path: Path): string {
    return this.#document.scalar(table[key], [...path, key]);
  }

  #needed(table: Record<string, unknown>, key: string, path: Path): string {
    const text = this.#text(table, key, path);
    if (text === "") this.#document.problem(path, `${key} is missing`);
    return text;
  }

  #optional<Key extends string>(table: Record<string, unknown>, key: Key, path: Path): { [K in Key]?: string } {
    const text = this.#text(table, key, path);
    return (text === "" ? {} : { [key]: text }) as { [K in Key]?: string };
  }

  #url(table: Record<string, unknown>, key: string, path: Path): string {
    const text = this.#needed(table, key, path);
    const url = URL.canParse(text) ? new URL(text) : undefined;
    if (text !== "" && (!url || !/^https?:$/.test(url.protocol) || url.username !== ""))
      this.#document.problem([...path, key], `${key} must be an http or https address without a password in it`);
    return text;
  }

  #flag(table: Record<string, unknown>, key: string, path: Path, otherwise: boolean): boolean {
    const value = table[key] ?? otherwise;
    if (typeof value !== "boolean") this.#document.problem([...path, key], `${key} must be true or false`);
    return value === true;
  }

  #duration(table: Record<string, unknown>, key: string, path: Path, otherwise: number, least = 1): number {
    if (table[key] === undefined) return otherwise;
    const ms = durationOf(table[key]);
    if (ms === undefined || ms < least)
      this.#document.problem([...path, key], `${key} is no duration such as 30s or 4h`);
    return ms ?? otherwise;
  }

  #matchers(table: Record<string, unknown>, key: string, path: Path): LabelMatcher[] {
    return this.#list(table, key, path, (one, at) => {
      try {
        return [parseMatcher(this.#document.scalar(one, at))];
      } catch (thrown) {
        this.#document.problem(at, messageOf(thrown));
        return [];
      }
    }).flat();
  }

  /** The older forms of matchers: tables of names and values. */
  #older(table: Record<string, unknown>, key: string, op: "=" | "=~", path: Path): LabelMatcher[] {
    if (table[key] === undefined) return [];
    const pairs = Object.keys(this.#document.table(table[key], [...path, key], Object.keys(table[key] ?? {})));
    return pairs.map((name) => {
      const value = this.#document.scalar((table[key] as Record<string, unknown>)[name], [...path, key, name]);
      return { name, op, value };
    });
  }

  #route(value: unknown, path: Path, parent: Omit<Route, "matchers" | "continues" | "routes">, depth: number): Route {
    const table = this.#document.table(value, path, ROUTE);
    if (depth > MOST_DEPTH || ++this.#routes > MOST_ROUTES) {
      this.#document.problem(path, `there are at most ${MOST_ROUTES} routes, ${MOST_DEPTH} inside each other`);
      return { ...parent, matchers: [], continues: false, routes: [] };
    }
    const receiver = this.#text(table, "receiver", path) || parent.receiver;
    if (!this.#names.has(receiver))
      this.#document.problem(
        path,
        receiver === "" ? "the first route needs a receiver" : `there is no receiver ${JSON.stringify(receiver)}`,
      );
    const group_by = this.#list(table, "group_by", path, (one, at) => this.#document.scalar(one, at));
    const own = {
      receiver,
      group_by: table["group_by"] === undefined ? parent.group_by : group_by.includes("...") ? undefined : group_by,
      group_wait_ms: this.#duration(table, "group_wait", path, parent.group_wait_ms, 0),
      group_interval_ms: this.#duration(table, "group_interval", path, parent.group_interval_ms),
      repeat_interval_ms: this.#duration(table, "repeat_interval", path, parent.repeat_interval_ms),
    };
    return {
      ...own,
      matchers: [
        ...this.#matchers(table, "matchers", path),
        ...this.#older(table, "match", "=", path),
        ...this.#older(table, "match_re", "=~", path),
      ],
      continues: this.#flag(table, "continue", path, false),
      routes: this.#list(table, "routes", path, (one, at) => this.#route(one, at, own, depth + 1)),
    };
  }

  #inhibit(value: unknown, path: Path): InhibitRule {
    const table = this.#document.table(value, path, ["source_matchers", "target_matchers", "equal"]);
    return {
      source: this.#matchers(table, "source_matchers", path),
      target: this.#matchers(table, "target_matchers", path),
      equal: this.#list(table, "equal", path, (one, at) => this.#document.scalar(one, at)),
    };
  }

  #receiver(value: unknown, path: Path): Receiver {
    const table = this.#document.table(value, path, ["name", ...Object.keys(KINDS)]);
    const name = this.#needed(table, "name", path);
    const integrations = Object.entries(KINDS).flatMap(([key, { kind, fields }]) =>
      this.#list(table, key, path, (one, at) => this.#integration(kind, this.#document.table(one, at, fields), at)),
    );
    return { name, integrations };
  }

  #integration(kind: Integration["kind"], table: Record<string, unknown>, path: Path): Integration {
    // As in Alertmanager: chat and e-mail receivers get resolved alerts only with send_resolved.
    const send_resolved = this.#flag(table, "send_resolved", path, kind === "webhook" || kind === "ntfy");
    switch (kind) {
      case "webhook": {
        const max_alerts = this.#number(table, "max_alerts", path, 0);
        return {
          kind,
          send_resolved,
          max_alerts,
          url: this.#url(table, "url", path),
          ...this.#optional(table, "token", path),
        };
      }
      case "slack":
        return {
          kind,
          send_resolved,
          url: this.#url(table, "api_url", path),
          ...this.#optional(table, "channel", path),
        };
      case "ntfy": {
        const url = this.#url(table, "url", path);
        if (URL.canParse(url) && !/^\/[\w-]{1,64}$/.test(new URL(url).pathname))
          this.#document.problem([...path, "url"], "url ends in one topic, such as https://ntfy.sh/my-topic");
        const priority = table["priority"] === undefined ? {} : { priority: this.#number(table, "priority", path, 3) };
        return { kind, send_resolved, url, ...this.#optional(table, "token", path), ...priority };
      }
      case "email":
        return { kind, send_resolved, ...this.#email(table, path) };
    }
  }

  #number(table: Record<string, unknown>, key: string, path: Path, otherwise: number): number {
    const value = table[key] ?? otherwise;
    if (!Number.isSafeInteger(value) || Number(value) < 0)
      this.#document.problem([...path, key], `${key} must be a whole number`);
    return Number(value);
  }

  #email(table: Record<string, unknown>, path: Path) {
    const to = this.#needed(table, "to", path)
      .split(",")
      .map((one) => one.trim());
    const from = this.#needed(table, "from", path);
    for (const address of [...to, from])
      if (address !== "" && !/^[^\s<>@,;:"()]+@[^\s<>@,;:"()]+$/.test(address))
        this.#document.problem(path, `${JSON.stringify(address)} is no e-mail address such as me@example.com`);
    const [, host = "", port = ""] = /^\[?([^\]]+?)\]?:(\d{1,5})$/.exec(this.#needed(table, "smarthost", path)) ?? [];
    if (host === "") this.#document.problem(path, "smarthost is host:port, such as smtp.example.com:587");
    const { auth_username: username, auth_password: password } = {
      ...this.#optional(table, "auth_username", path),
      ...this.#optional(table, "auth_password", path),
    };
    const require_tls = this.#flag(table, "require_tls", path, true);
    return {
      to,
      from,
      host,
      port: Number(port),
      require_tls,
      ...(username ? { username, password: password ?? "" } : {}),
    };
  }
}
