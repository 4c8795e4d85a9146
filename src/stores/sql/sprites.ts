import { labelsOf } from "#core/sprite-labels.ts";
import type { SpriteApp, SpriteStore } from "#sprites/store.ts";
import type { Sprite, SpriteView } from "#sprites/types.ts";
import { type Database, readOne, type Value } from "../database.ts";
import { lockOrg } from "./auth.ts";

const COLUMNS = [
  "id",
  "org_id",
  "app_id",
  "name",
  "machine_id",
  "state",
  "settings",
  "first_labels",
  "url_auth",
  "private_access",
  "created_at",
  "updated_at",
] as const;
const VIEW = `SELECT ${COLUMNS.map((name) => `s.${name}`).join(", ")}, a.name AS app_name, m.state AS machine_state, m.started_at,
    m.updated_at AS machine_updated_at, l.value AS labels
  FROM sprites s JOIN apps a ON a.id = s.app_id LEFT JOIN machines m ON m.id = s.machine_id
  LEFT JOIN machine_metadata l ON l.machine_id = s.machine_id AND l.key = 'sprite_labels'`;

type Row = Omit<SpriteView, "settings" | "first_labels" | "labels"> & {
  settings: string;
  first_labels: string;
  labels: string | null;
};

function viewOf({ settings, first_labels, labels, ...row }: Row): SpriteView {
  const first = JSON.parse(first_labels) as string[];
  return {
    ...row,
    settings: JSON.parse(settings) as Sprite["settings"],
    first_labels: first,
    labels: row.machine_state === null ? first : labelsOf(labels ?? ""),
  };
}

export function sqlSpriteStore(database: Database): SpriteStore {
  return { ...appsOf(database), ...readsOf(database), ...writesOf(database) };
}

function appsOf(database: Database): Pick<SpriteStore, "app" | "putApp" | "orgs"> {
  return {
    orgs: () => database.read("SELECT o.id, o.slug FROM sprite_apps s JOIN orgs o ON o.id = s.org_id", []),
    app: (org_id) =>
      readOne<SpriteApp>(
        database,
        `SELECT o.org_id, o.app_id, a.name AS app_name FROM sprite_apps o JOIN apps a ON a.id = o.app_id
         WHERE o.org_id = ?`,
        [org_id],
      ),
    async putApp(org_id, app_id) {
      await database.write([
        lockOrg(org_id),
        {
          sql: `INSERT INTO sprite_apps (org_id, app_id) SELECT ?, id FROM apps WHERE id = ? ON CONFLICT DO NOTHING`,
          args: [org_id, app_id],
        },
      ]);
    },
  };
}

type Reads = Pick<SpriteStore, "find" | "findByMachine" | "count" | "list" | "states" | "unfinished" | "inState">;

function readsOf(database: Database): Reads {
  const all = async (rest: string, args: readonly Value[]): Promise<SpriteView[]> =>
    (await database.read<Row>(`${VIEW} ${rest}`, args)).map(viewOf);
  return {
    find: async (org_id, name) => (await all("WHERE s.org_id = ? AND s.name = ?", [org_id, name]))[0],
    findByMachine: async (org_id, machine_id) =>
      (await all("WHERE s.org_id = ? AND s.machine_id = ?", [org_id, machine_id]))[0],
    async count(org_id) {
      const sql = "SELECT count(*) AS n FROM sprites WHERE org_id = ?";
      return (await readOne<{ n: number }>(database, sql, [org_id]))?.n ?? 0;
    },
    list: (org_id, { prefix, after, limit }) =>
      all(
        `WHERE s.org_id = ? AND s.name > ? AND substr(s.name, 1, ${prefix.length}) = ? AND s.state <> 'deleting'
         ORDER BY s.name LIMIT ?`,
        [org_id, after, prefix, limit],
      ),
    states: (org_id) =>
      database.read(
        `SELECT m.state, count(*) AS sprites FROM sprites s LEFT JOIN machines m ON m.id = s.machine_id
         WHERE s.org_id = ? AND s.state <> 'deleting' GROUP BY m.state`,
        [org_id],
      ),
    unfinished: (before, limit) =>
      all(
        `WHERE (s.state <> 'ready' AND s.updated_at <= ?)
         OR (s.state = 'ready' AND (m.id IS NULL OR m.state = 'destroyed')) ORDER BY s.id LIMIT ?`,
        [before, limit],
      ),
    inState: (state, { after, limit }) =>
      all("WHERE s.state = 'ready' AND m.state = ? AND s.id > ? ORDER BY s.id LIMIT ?", [state, after, limit]),
  };
}

function writesOf(database: Database): Omit<SpriteStore, keyof Reads | keyof ReturnType<typeof appsOf>> {
  const done = async (sql: string, args: readonly Value[]): Promise<boolean> =>
    (await database.write([{ sql, args, rows: 1 }])).ok;
  return {
    async insert(sprite, limit) {
      const row: Record<(typeof COLUMNS)[number], Value> = {
        ...sprite,
        settings: JSON.stringify(sprite.settings),
        first_labels: JSON.stringify(sprite.first_labels),
      };
      const marks = COLUMNS.map((name) => (name.endsWith("_at") ? "CAST(? AS BIGINT)" : "CAST(? AS TEXT)"));
      const outcome = await database.write([
        // Locks the organization, so that concurrent inserts respect the limit.
        lockOrg(sprite.org_id),
        { sql: "UPDATE apps SET name = name WHERE id = ?", args: [sprite.app_id], rows: 1 },
        {
          sql: `INSERT INTO sprites (${COLUMNS.join(", ")}) SELECT ${marks.join(", ")}
                WHERE (SELECT count(*) FROM sprites WHERE org_id = ?) < ? ON CONFLICT DO NOTHING`,
          args: [...COLUMNS.map((name) => row[name]), sprite.org_id, limit],
          rows: 1,
        },
      ]);
      if (outcome.ok) return "inserted";
      if (outcome.failed < 2) return "no_app";
      const sql = "SELECT id FROM sprites WHERE org_id = ? AND name = ?";
      const there = await readOne<{ id: string }>(database, sql, [sprite.org_id, sprite.name]);
      if (!there) return "limit";
      return there.id === sprite.id ? "exists" : "name_taken";
    },
    change(id, { url_auth, private_access }, now) {
      const set = {
        ...(url_auth === undefined ? {} : { url_auth }),
        ...(private_access === undefined ? {} : { private_access }),
      };
      const names = [...Object.keys(set), "updated_at"];
      const sql = `UPDATE sprites SET ${names.map((name) => `${name} = ?`).join(", ")} WHERE id = ? AND state <> 'deleting'`;
      return done(sql, [...Object.values(set), now, id]);
    },
    putReady: (id) => done("UPDATE sprites SET state = 'ready' WHERE id = ? AND state = 'creating'", [id]),
    putDeleting: (id) => done("UPDATE sprites SET state = 'deleting' WHERE id = ?", [id]),
    async remove(id) {
      await database.write([{ sql: "DELETE FROM sprites WHERE id = ? AND state = 'deleting'", args: [id] }]);
    },
  };
}
