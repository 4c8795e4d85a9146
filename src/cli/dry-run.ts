/** `--dry-run` for commands that write: they send their read requests, and stop before the first write. */
import type { Outgoing } from "#client/client.ts";
import type { Verb } from "./verb.ts";
import { isReading } from "./watch.ts";

/** Verbs that change nothing, or have no request to show. */
const WITHOUT: Record<string, string> = {
  up: "is the platform",
  down: "stops a process here",
  ssh: "is a terminal",
  dashboard: "prints a link",
  export: "only looks",
  gc: "shows what it would do unless --yes",
  logs: "only looks",
  doctor: "only looks",
  backup: "writes a file here",
  restore: "fills a data dir here",
  emulator: "runs a program here",
  completion: "prints a script",
  "auth token": "only looks",
  "auth whoami": "only looks",
  "tokens attenuate": "works without the platform",
  "tokens inspect": "works without the platform",
  "machines wait": "only looks",
  "machines events": "only looks",
  "machines versions": "only looks",
  "machines logs": "only looks",
  "connectors providers": "only looks",
  "connectors test": "only tries a policy",
  "connectors audit": "only looks",
  "oidc verify": "only looks",
  "oidc trust-policy": "prints a document",
  "oidc keys": "only looks",
  "metrics range": "only looks",
  "metrics series": "only looks",
  "metrics cardinality": "only looks",
};

/** Nouns without a platform. */
const ELSEWHERE = new Set(["context", "db", "service"]);

export const changesSomething = (verb: Verb): boolean =>
  !isReading(verb) && WITHOUT[verb.words] === undefined && !ELSEWHERE.has(verb.words.split(" ")[0] ?? "");

/** Verbs with their own dry-run output. */
export const tellsItself = ({ options = [] }: Verb): boolean => options.some(([flags]) => flags === "--dry-run");

/** The held-back request of a dry run. */
export class NotSent extends Error {
  override readonly name = "NotSent";
  readonly request: Outgoing;

  constructor(request: Outgoing) {
    super(`${request.method} ${request.url} was not sent`);
    this.request = request;
  }
}

export function holdBack(request: Outgoing): void {
  if (request.method !== "GET" && request.method !== "HEAD") throw new NotSent(request);
}
