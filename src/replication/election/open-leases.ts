import type { Clock } from "#core/clock.ts";
import { EtcdLeases } from "./etcd-leases.ts";
import type { LeaseStore } from "./lease-store.ts";
import { SqliteLeases } from "./sqlite-leases.ts";

/** The lease store a setting names: `sqlite:PATH` or `etcd:http://host:port/NAME`. */
export function openLeases(where: string, clock: Clock): LeaseStore {
  const [, kind, rest = ""] = /^(sqlite|etcd):(.+)$/.exec(where) ?? [];
  if (kind === "sqlite") return new SqliteLeases(rest, clock);
  if (kind === "etcd") {
    const url = new URL(rest);
    return new EtcdLeases(url.origin, url.pathname.slice(1) || "default");
  }
  throw new Error(`${where} is not a lease store; write sqlite:PATH or etcd:http://host:port/NAME`);
}
