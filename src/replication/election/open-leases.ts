import { readFileSync } from "node:fs";
import type { Clock } from "#core/clock.ts";
import { EtcdLeases } from "./etcd-leases.ts";
import { HttpLeases, sendTo } from "./http-leases.ts";
import type { LeaseStore } from "./lease-store.ts";
import { RowLeases } from "./row-leases.ts";
import { SqliteRows } from "./sqlite-rows.ts";

export const LEASE_FORMS = "platform:http://host:port/APP/NAME, etcd:http://host:2379/NAME or sqlite:PATH";

export interface LeaseOptions {
  clock: Clock;
  /** A file with the platform's token, read at every request; without it HANGAR_TOKEN is used. */
  token_file?: string | undefined;
}

/** Opens the configured lease store. */
export function openLeases(where: string, { clock, token_file }: LeaseOptions): LeaseStore {
  const [, kind, rest = ""] = /^(sqlite|etcd|platform):(.+)$/.exec(where) ?? [];
  if (kind === "sqlite") return new RowLeases(new SqliteRows(rest), clock);
  if (kind === undefined || !URL.canParse(rest)) throw new Error(`${where} is not a lease store; write ${LEASE_FORMS}`);
  const { origin, pathname } = new URL(rest);
  const [first = "", second = "", ...more] = pathname.slice(1).split("/");
  if (kind === "etcd") return new EtcdLeases(origin, pathname.slice(1) || "default");
  if (first === "" || more.length > 0)
    throw new Error(`${where} must name an app, and may name a lease: ${LEASE_FORMS}`);
  const send = sendTo(origin, () => tokenFrom(token_file));
  return new HttpLeases({ app: first, name: second || "default", send });
}

function tokenFrom(file: string | undefined): string {
  const token = file === undefined ? process.env["HANGAR_TOKEN"] : readFileSync(file, "utf8");
  if (!token) throw new Error("the platform's lease needs a token: --token-file FILE, or HANGAR_TOKEN");
  return token.trim();
}
