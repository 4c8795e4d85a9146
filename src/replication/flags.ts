/** Options and environment variables that the programs of this module share. */
import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { ParseArgsOptionsConfig } from "node:util";
import type { Clock } from "#core/clock.ts";
import type { ObjectStore } from "#core/objects.ts";
import { openObjects } from "#stores/objects/open.ts";
import type { Credentials } from "./credentials/credentials.ts";
import { SharedKey } from "./credentials/shared-key.ts";
import { REPLICATION_LIMITS } from "./limits.ts";
import { MachineSocket } from "./machine-socket.ts";
import type { AckMode } from "./node/in-sync-replicas.ts";

export const CREDENTIAL_OPTIONS = {
  "key-file": { type: "string" },
  "identity-issuer": { type: "string" },
  "identity-subject": { type: "string" },
  "identity-jwks": { type: "string" },
  "identity-socket": { type: "string", default: "/.svc/api" },
} as const satisfies ParseArgsOptionsConfig;

export interface CredentialFlags {
  "key-file"?: string | undefined;
  "identity-issuer"?: string | undefined;
  "identity-subject"?: string | undefined;
  "identity-jwks"?: string | undefined;
  "identity-socket": string;
}

/** The credentials of this node or user; undefined when none were given. */
export async function credentialsFrom(flags: CredentialFlags): Promise<Credentials | undefined> {
  const { "identity-issuer": issuer, "identity-subject": subject } = flags;
  if (issuer === undefined) {
    const key =
      flags["key-file"] === undefined ? process.env["HANGAR_DB_KEY"] : readFileSync(flags["key-file"], "utf8");
    return key === undefined ? undefined : new SharedKey(checkedKey(key.trim()));
  }
  if (subject === undefined) throw new Error("--identity-issuer needs --identity-subject, for example org:app:*");
  // Loaded on demand.
  const { MachineIdentity } = await import("./credentials/machine-identity.ts");
  const socket = new MachineSocket(flags["identity-socket"]);
  const mint = (audience: string): Promise<string> => socket.token(audience);
  return new MachineIdentity({ issuer, subject, mint, jwks_url: flags["identity-jwks"] });
}

/** A guessable key is no protection. */
const KEY_CHARS = 16;

function checkedKey(key: string): string {
  if (key.length < KEY_CHARS)
    throw new Error(`the key must have at least ${KEY_CHARS} characters: openssl rand -hex 32`);
  return key;
}

/** Parses a node's URL. `what` is named in the error. */
export function nodeAddress(what: string, text: string): string {
  // `localhost:20202` also parses, as a scheme.
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol === "http:") return url.origin;
  throw new Error(`${what} is a node's address such as http://127.0.0.1:20202, not ${JSON.stringify(text)}`);
}

export interface AckFlags {
  ack?: string | undefined;
  "cluster-size"?: string | undefined;
  "max-unacked"?: string | undefined;
}

/** Parses `--ack` and the limit of unacknowledged transactions. */
export function ackIn(flags: AckFlags): { ack?: AckMode; max_unacked?: number } {
  const { ack = "none", "cluster-size": size, "max-unacked": most } = flags;
  if (ack !== "none" && ack !== "one" && ack !== "quorum")
    throw new Error(`--ack is none, one or quorum, not ${JSON.stringify(ack)}`);
  if ((ack === "quorum") !== (size !== undefined))
    throw new Error("--ack quorum needs --cluster-size, the number of nodes; without it there is none");
  if (ack === "none" && most !== undefined) throw new Error("--max-unacked needs --ack one or --ack quorum");
  const nodes = size === undefined ? 2 : count("--cluster-size", size, 2, REPLICATION_LIMITS.cluster_size);
  const replicas = { none: 0, one: 1, quorum: Math.floor(nodes / 2) }[ack];
  const unacked = most === undefined ? {} : { max_unacked: count("--max-unacked", most, 1, Number.MAX_SAFE_INTEGER) };
  return { ack: { name: ack, replicas }, ...unacked };
}

function count(what: string, text: string, least: number, most: number): number {
  const value = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (value >= least && value <= most) return value;
  throw new Error(`${what} is a number from ${least} to ${most}, not ${JSON.stringify(text)}`);
}

/** A directory, or `https://host/bucket[/path]` of an S3-compatible store with credentials in the environment. */
export async function backupAt(where: string, clock: Clock): Promise<ObjectStore> {
  const url = /^https?:\/\//.test(where) ? new URL(where) : pathToFileURL(resolve(where));
  const { env } = process;
  const setting = {
    url,
    region: env["HANGAR_OBJECTS_REGION"] ?? "us-east-1",
    access_key: env["HANGAR_OBJECTS_ACCESS_KEY"] ?? "",
    secret_key: env["HANGAR_OBJECTS_SECRET_KEY"] ?? "",
  };
  if (url.protocol !== "file:" && (setting.access_key === "" || setting.secret_key === "")) {
    throw new Error(`${where} needs HANGAR_OBJECTS_ACCESS_KEY and HANGAR_OBJECTS_SECRET_KEY`);
  }
  return await openObjects(setting, "", clock);
}
