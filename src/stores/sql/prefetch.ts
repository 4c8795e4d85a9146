import { DEFAULT_ORG } from "#auth/guard.ts";
import type { Org, Token } from "#auth/types.ts";
import { LIMITS } from "#core/limits.ts";
import { type Keep, Prefetched, type Recollection } from "#core/prefetched.ts";
import type { Prefetch } from "#http/access.ts";
import type { Database, Query } from "../database.ts";
import { APP } from "./apps.ts";
import { ORG, TOKEN } from "./auth.ts";
import { HOSTS } from "./hosts.ts";
import { SELECT } from "./machine-lists.ts";
import { type MachineRow, operationIn, toMachine, type WorkRow } from "./machine-rows.ts";
import { WORK } from "./machines.ts";

const columns = (list: string, table: string): string =>
  list
    .split(", ")
    .map((column) => `${table}.${column}`)
    .join(", ");

/** A token and its ancestors, which it is revoked with. */
const TOKENS = `WITH RECURSIVE chain AS (
    SELECT ${TOKEN}, 0 AS depth FROM tokens WHERE id = ?
    UNION ALL SELECT ${columns(TOKEN, "t")}, c.depth + 1 FROM tokens t JOIN chain c ON t.id = c.parent_id
    WHERE c.depth < ${LIMITS.token_chain})
  SELECT ${TOKEN} FROM chain`;

type Lookup = Query & { keep(rows: unknown[], keep: Keep): void };

const org = (sql: string, args: string[]): Lookup => ({
  sql: `SELECT ${ORG} FROM orgs WHERE ${sql}`,
  args,
  keep: (rows, keep) => {
    for (const row of rows as Org[]) {
      keep("org", row.id, row);
      keep("org slug", row.slug, row);
    }
  },
});

const tokenLookups = (id: string): Lookup[] => [
  {
    sql: TOKENS,
    args: [id],
    keep: (rows, keep) => {
      for (const row of rows as Token[]) keep("token", row.id, row);
    },
  },
  org("id = (SELECT org_id FROM tokens WHERE id = ?)", [id]),
];

const appLookups = (name: string): Lookup[] => [
  {
    sql: `SELECT ${APP} FROM apps WHERE name = ?`,
    args: [name],
    // Used by authorization and again by the handler.
    keep: ([row], keep) => {
      if (row) for (let use = 0; use < 2; use++) keep("app", name, row);
    },
  },
  org("id = (SELECT org_id FROM apps WHERE name = ?)", [name]),
];

/** Rows for placing a new machine. */
const placeLookups = (app_name: string): Lookup[] => [
  { sql: HOSTS, keep: (rows, keep) => keep("hosts", "all", rows) },
  {
    sql: `SELECT n.org_id, n.name, n.prefix FROM private_networks n JOIN apps a ON a.org_id = n.org_id AND a.network = n.name
          WHERE a.name = ?`,
    args: [app_name],
    keep: (rows, keep) => {
      for (const row of rows as { org_id: string; name: string; prefix: string | null }[])
        keep("network", `${row.org_id} ${row.name}`, row);
    },
  },
];

const slugLookup = (slug: string): Lookup => ({
  sql: `SELECT ${ORG} FROM orgs WHERE slug = ?`,
  args: [slug],
  // Used by authorization and again by the handler.
  keep: ([row], keep) => {
    if (row) for (let use = 0; use < 2; use++) keep("org slug", slug, row);
  },
});

const machineLookup = (id: string): Lookup => ({
  sql: `${SELECT} WHERE m.id = ?`,
  args: [id],
  // Used by the handler and again by what it calls: the lease, the way to the machine's host.
  keep: ([row], keep) => {
    if (row) for (let use = 0; use < 2; use++) keep("machine", id, toMachine(row as MachineRow));
  },
});

/** A change reads a machine twice: to check that it exists, and with its operations. */
const workLookup = (id: string): Lookup => ({
  sql: WORK,
  args: [id],
  keep: (found, keep) => {
    const rows = found as (MachineRow & WorkRow)[];
    const [first] = rows;
    if (!first) return;
    keep("machine", id, toMachine(first));
    keep("work", id, { machine: toMachine(first), operations: rows.flatMap(operationIn) });
  },
});

/** Prefetches what a request names in one round trip. Undefined where a read costs none. */
export function sqlPrefetch(database: Database): Prefetch | undefined {
  if (!database.readAll) return undefined;
  const readAll = database.readAll.bind(database);
  const recollections = new Recollections();
  return (wanted) => {
    const { token_id, app_name, org_slug, machine_id, confirms } = wanted;
    // Nothing is read without a token.
    if (!token_id) return new Prefetched(async () => NOTHING);
    const lookups = [...tokenLookups(token_id), ...lookupsOf(wanted)];
    const read = async (): Promise<Reading> => {
      const found = await readAll(lookups);
      const keepAll = (keep: Keep): void => {
        for (const [index, lookup] of lookups.entries()) lookup.keep(found[index] ?? [], keep);
      };
      return { found, keepAll };
    };
    // The request's own reads are sent at the same time, so that all take one round trip.
    if (!confirms) return new Prefetched(read);
    return new Prefetched(read, recollections.of([token_id, app_name, org_slug, machine_id].join(" ")));
  };
}

function lookupsOf({ app_name, org_slug, machine_id, writes }: Parameters<Prefetch>[0]): Lookup[] {
  const ofMachine = writes ? workLookup : machineLookup;
  const of_machine = machine_id ? [ofMachine(machine_id)] : [];
  // Without an organization it is the operator's own; other tokens have one.
  if (!app_name) return [slugLookup(typeof org_slug === "string" ? org_slug : DEFAULT_ORG), ...of_machine];
  return [...appLookups(app_name), ...(writes && !machine_id ? placeLookups(app_name) : []), ...of_machine];
}

type Reading = NonNullable<Recollection["last"]>;
const NOTHING: Reading = { found: [], keepAll: () => {} };

/** Cached results of reads, by token and target. */
class Recollections {
  readonly #readings = new Map<string, Reading>();

  of(name: string): Recollection {
    return {
      last: this.#readings.get(name),
      remember: (reading) => {
        if (this.#readings.size >= LIMITS.recollections) this.#readings.clear();
        this.#readings.set(name, reading);
      },
    };
  }
}
