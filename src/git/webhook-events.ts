/** Events of GitHub, Gitea and Forgejo: whether they are genuine, and what they say happened. Pure. */
import { createHmac } from "node:crypto";
import type { IncomingHttpHeaders } from "node:http";
import { sameSecret } from "#core/same-secret.ts";
import { PREVIEW_BRANCH } from "./branch-names.ts";
import { branchOf, isZero } from "./types.ts";

/** What an event says. Only a hint: what is there is looked up in the repository. */
export type GitEvent =
  | { kind: "ping" }
  | { kind: "ignored"; why: string }
  /** The branch was moved, made or deleted. */
  | { kind: "push"; branch: string }
  /** Its pull request is closed. */
  | { kind: "close"; branch: string };

/** Gitea and Forgejo send GitHub's headers, too; their own come first. */
const SENDERS = ["forgejo", "gitea", "github"];
const OPENED = new Set(["opened", "reopened", "synchronize", "synchronized"]);
const HEX_64 = /^[0-9a-f]{64}$/;

/** The first of these headers. */
function header(headers: IncomingHttpHeaders, names: readonly string[]): string {
  const found = names.map((name) => headers[name]).find((value) => typeof value === "string");
  return typeof found === "string" ? found : "";
}

export const eventName = (headers: IncomingHttpHeaders): string =>
  header(
    headers,
    SENDERS.map((sender) => `x-${sender}-event`),
  );

export const deliveryName = (headers: IncomingHttpHeaders): string =>
  header(
    headers,
    SENDERS.map((sender) => `x-${sender}-delivery`),
  );

/** Whether the body was signed with the secret. Compared in constant time. */
export function isSigned(headers: IncomingHttpHeaders, body: Uint8Array, secret: string): boolean {
  const given = header(headers, ["x-hub-signature-256", "x-forgejo-signature", "x-gitea-signature"]);
  const hex = given.replace(/^sha256=/, "").toLowerCase();
  const right = createHmac("sha256", secret).update(body).digest("hex");
  return HEX_64.test(hex) && sameSecret(hex, right);
}

/** The JSON of a body, which may be a form's field. Undefined when it is neither. */
export function payloadOf(headers: IncomingHttpHeaders, body: Uint8Array): Record<string, unknown> | undefined {
  const text = Buffer.from(body).toString();
  const is_form = (headers["content-type"] ?? "").startsWith("application/x-www-form-urlencoded");
  try {
    const value: unknown = JSON.parse(is_form ? (new URLSearchParams(text).get("payload") ?? "") : text);
    return isTable(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

const isTable = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);
const at = (value: unknown, ...path: string[]): unknown =>
  path.reduce<unknown>((inner, name) => (isTable(inner) ? inner[name] : undefined), value);
const textAt = (value: unknown, ...path: string[]): string => {
  const found = at(value, ...path);
  return typeof found === "string" ? found : "";
};
const ignored = (why: string): GitEvent => ({ kind: "ignored", why });

const EVENTS: Record<string, (payload: Record<string, unknown>) => GitEvent> = {
  ping: () => ({ kind: "ping" }),
  push: (payload) => branchEvent("push", branchOf(textAt(payload, "ref")) ?? ""),
  delete: (payload) =>
    textAt(payload, "ref_type") === "branch"
      ? branchEvent("push", textAt(payload, "ref").replace(/^refs\/heads\//, ""))
      : ignored("tags are not deployed"),
  pull_request(payload) {
    const action = textAt(payload, "action");
    const [from, to] = ["head", "base"].map((end) => textAt(payload, "pull_request", end, "repo", "full_name"));
    if (from !== to) return ignored("pull requests of forks are not deployed");
    const branch = textAt(payload, "pull_request", "head", "ref");
    if (OPENED.has(action)) return branchEvent("push", branch);
    return action === "closed" ? branchEvent("close", branch) : ignored(`nothing to do for a pull request ${action}`);
  },
};

function branchEvent(kind: "push" | "close", branch: string): GitEvent {
  if (branch === "") return ignored("only branches are deployed");
  return PREVIEW_BRANCH.test(branch)
    ? { kind, branch }
    : ignored("the name of the branch has other characters than letters, digits and . _ - + @ /");
}

/** What an event of this name says. */
export function readEvent(name: string, payload: Record<string, unknown>): GitEvent {
  const read = Object.hasOwn(EVENTS, name) ? EVENTS[name] : undefined;
  return read?.(payload) ?? ignored(`events named ${JSON.stringify(name.slice(0, 40))} are not used`);
}

export const isGone = (id: string | undefined): boolean => id === undefined || isZero(id);
