/**
 * The lease in etcd, through its JSON gateway, so without a client library. The holder's key is bound to an etcd
 * lease and vanishes with it; the last term, and the last one that had a primary, stay in keys of their own. Terms are
 * etcd revisions: they only grow.
 */
import { type InSync, inSyncAfterHandOff, mayStand, newerInSync, type StoredInSync } from "./in-sync.ts";
import type { Candidate, Lease, LeaseStore } from "./lease-store.ts";

const REQUEST_MS = 3000;

interface Keyed {
  value: string;
  mod_revision: number;
}

const base64 = (text: string): string => Buffer.from(text).toString("base64");

export class EtcdLeases implements LeaseStore {
  readonly #origin: string;
  readonly #keys: { holder: string; term: string; served: string; successor: string };
  /** The etcd lease behind the last one granted. */
  #etcd_lease: { term: number; id: string } | undefined;

  constructor(origin: string, name: string) {
    this.#origin = origin;
    const prefix = `hangar/db/${name}`;
    const key = (name: string): string => `${prefix}/${name}`;
    this.#keys = { holder: key("holder"), term: key("term"), served: key("served"), successor: key("successor") };
  }

  async acquire(candidate: Candidate, ttl_ms: number, force = false): Promise<Lease | undefined> {
    const { node, url, complete_term } = candidate;
    const { holder, term, served, successor } = await this.#read();
    const taken = holder !== undefined && (JSON.parse(holder.value) as Lease).node !== node;
    const reserved = successor !== undefined && successor.value !== node;
    const last = servedIn(served);
    const lacks = complete_term < last.term || !mayStand(last.in_sync, node);
    if (taken || reserved || (lacks && !force)) return undefined;
    // Everything read must be unchanged. The revision read becomes the next term: it is higher than any earlier term,
    // and of two candidates with the same one only one succeeds.
    const next = Math.max(Number(term?.value ?? 0), await this.#revision(), candidate.term) + 1;
    const id = await this.#grant(ttl_ms);
    const lease: Lease = { node, url, term: next };
    const { succeeded } = await this.#post("kv/txn", {
      compare: [
        unchanged(this.#keys.holder, holder),
        unchanged(this.#keys.term, term),
        unchanged(this.#keys.served, served),
        unchanged(this.#keys.successor, successor),
      ],
      success: [
        { request_put: { key: base64(this.#keys.holder), value: base64(JSON.stringify(lease)), lease: id } },
        { request_put: { key: base64(this.#keys.term), value: base64(String(next)) } },
        { request_delete_range: { key: base64(this.#keys.successor) } },
      ],
    });
    if (succeeded !== true) {
      await this.#post("lease/revoke", { ID: id });
      return undefined;
    }
    this.#etcd_lease = { term: next, id };
    return lease;
  }

  async renew(lease: Lease, _ttl_ms: number, said?: InSync): Promise<boolean> {
    if (this.#etcd_lease?.term !== lease.term) return false;
    const answer = await this.#post("lease/keepalive", { ID: this.#etcd_lease.id });
    const result = answer["result"] as { TTL?: string } | undefined;
    if (!(Number(result?.TTL ?? 0) > 0)) return false;
    for (;;) {
      const { holder, served } = await this.#read();
      if (!holder || (JSON.parse(holder.value) as Lease).term !== lease.term) return false;
      const before = servedIn(served);
      const in_sync = newerInSync(before.in_sync, lease.term, said);
      const value = JSON.stringify({ term: lease.term, in_sync } satisfies Served);
      if (served?.value === value) return true;
      const { succeeded } = await this.#post("kv/txn", {
        compare: [unchanged(this.#keys.holder, holder), unchanged(this.#keys.served, served)],
        success: [{ request_put: { key: base64(this.#keys.served), value: base64(value) } }],
      });
      // A concurrent renewal was faster; what it wrote counts.
      if (succeeded === true) return true;
    }
  }

  async release(lease: Lease, successor?: { node: string; for_ms: number }): Promise<void> {
    const { holder, served } = await this.#read();
    if (!holder || (JSON.parse(holder.value) as Lease).term !== lease.term) return;
    const id = successor && (await this.#grant(successor.for_ms));
    const { term, in_sync } = servedIn(served);
    const both = successor ? inSyncAfterHandOff(in_sync, lease.node, successor.node) : in_sync;
    const last = { key: base64(this.#keys.served), value: base64(JSON.stringify({ term, in_sync: both })) };
    const reserve = { key: base64(this.#keys.successor), value: base64(successor?.node ?? ""), lease: id };
    await this.#post("kv/txn", {
      compare: [unchanged(this.#keys.holder, holder)],
      success: [
        { request_delete_range: { key: base64(this.#keys.holder) } },
        ...(successor ? [{ request_put: reserve }, { request_put: last }] : []),
      ],
    });
  }

  async holder(): Promise<Lease | undefined> {
    const { holder } = await this.#read();
    return holder && (JSON.parse(holder.value) as Lease);
  }

  close(): Promise<void> {
    return Promise.resolve();
  }

  async #read(): Promise<{ holder?: Keyed; term?: Keyed; served?: Keyed; successor?: Keyed }> {
    const get = (key: string): object => ({ request_range: { key: base64(key) } });
    const { responses } = await this.#post("kv/txn", {
      compare: [],
      success: [get(this.#keys.holder), get(this.#keys.term), get(this.#keys.served), get(this.#keys.successor)],
    });
    const rows = responses as { response_range: { kvs?: Record<string, string>[] } }[];
    const [holder, term, served, successor] = rows.map(({ response_range }) => keyed(response_range.kvs?.[0]));
    return {
      ...(holder ? { holder } : {}),
      ...(term ? { term } : {}),
      ...(served ? { served } : {}),
      ...(successor ? { successor } : {}),
    };
  }

  async #revision(): Promise<number> {
    const { header } = await this.#post("kv/range", { key: base64(this.#keys.term) });
    return Number((header as { revision?: string } | undefined)?.revision ?? 0);
  }

  /** etcd counts whole seconds. Rounded up: a longer lease costs time, a shorter one safety. */
  async #grant(ttl_ms: number): Promise<string> {
    const { ID } = await this.#post("lease/grant", { TTL: Math.max(1, Math.ceil(ttl_ms / 1000)) });
    return String(ID);
  }

  async #post(path: string, body: object): Promise<Record<string, unknown>> {
    const response = await fetch(`${this.#origin}/v3/${path}`, {
      method: "POST",
      body: JSON.stringify(body),
      signal: AbortSignal.timeout(REQUEST_MS),
    });
    const answer = (await response.json()) as Record<string, unknown>;
    if (!response.ok) throw new Error(`etcd ${path}: ${JSON.stringify(answer)}`);
    return answer;
  }
}

/** The last term that had a primary, and its in-sync nodes. */
interface Served {
  term: number;
  in_sync: StoredInSync | null;
}

/** An earlier version stored the term alone. */
function servedIn(served: Keyed | undefined): Served {
  const value: unknown = served ? JSON.parse(served.value) : 0;
  return typeof value === "number" ? { term: value, in_sync: null } : (value as Served);
}

function keyed(row: Record<string, string> | undefined): Keyed | undefined {
  if (!row) return undefined;
  return {
    value: Buffer.from(row["value"] ?? "", "base64").toString("utf8"),
    mod_revision: Number(row["mod_revision"]),
  };
}

/** A transaction condition: the key is unchanged, or still absent. */
function unchanged(key: string, known: Keyed | undefined): object {
  return { key: base64(key), target: "MOD", result: "EQUAL", mod_revision: known?.mod_revision ?? 0 };
}
