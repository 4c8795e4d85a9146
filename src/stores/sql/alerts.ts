import type { AlertClaim, AlertStore, StoredRuleFile, StoredState } from "#alerts/store.ts";
import { type Database, readOne, type Step } from "../database.ts";

const FILE = `rule_files.org_id, rule_files.name, rule_files.app_id, apps.name AS app_name, rule_files.dialect,
  rule_files.content, rule_files.updated_at`;
const FILES = `SELECT ${FILE} FROM rule_files LEFT JOIN apps ON apps.id = rule_files.app_id`;

export function sqlAlertStore(database: Database): AlertStore {
  return {
    ruleFiles: (org_id) =>
      database.read<StoredRuleFile>(`${FILES} WHERE rule_files.org_id = ? ORDER BY rule_files.name`, [org_id]),

    findRuleFile: (org_id, name) =>
      readOne<StoredRuleFile>(database, `${FILES} WHERE rule_files.org_id = ? AND rule_files.name = ?`, [org_id, name]),

    ruleFileVersions: () => database.read("SELECT org_id, name, updated_at FROM rule_files"),

    async putRuleFile({ org_id, name, app_id, dialect, content, updated_at }, limit) {
      const outcome = await database.write([
        // Locks the organization, so that concurrent inserts respect the limit.
        { sql: "UPDATE orgs SET name = name WHERE id = ?", args: [org_id], rows: 1 },
        {
          sql: `INSERT INTO rule_files (org_id, name, app_id, dialect, content, updated_at)
                SELECT CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS TEXT), CAST(? AS BIGINT)
                WHERE (SELECT count(*) FROM rule_files WHERE org_id = ? AND name <> ?) < ?
                ON CONFLICT (org_id, name) DO UPDATE SET app_id = excluded.app_id, dialect = excluded.dialect,
                  content = excluded.content, updated_at = excluded.updated_at`,
          args: [org_id, name, app_id, dialect, content, updated_at, org_id, name, limit],
          rows: 1,
        },
      ]);
      return outcome.ok;
    },

    async deleteRuleFile(org_id, name) {
      const args = [org_id, name];
      const outcome = await database.write([
        { sql: "DELETE FROM rule_files WHERE org_id = ? AND name = ?", args, rows: 1 },
        { sql: "DELETE FROM rule_states WHERE org_id = ? AND file = ?", args },
      ]);
      return outcome.ok;
    },

    async claim(org_id, { runner, now, until }) {
      const sql = `INSERT INTO alert_claims (org_id, runner, runner_until) SELECT id, CAST(? AS TEXT), CAST(? AS BIGINT)
                   FROM orgs WHERE id = ?
                   ON CONFLICT (org_id) DO UPDATE SET runner = excluded.runner, runner_until = excluded.runner_until
                   WHERE alert_claims.runner = excluded.runner OR alert_claims.runner_until <= ?`;
      return (await database.write([{ sql, args: [runner, until, org_id, now], rows: 1 }])).ok;
    },

    async release(runner) {
      await database.write([{ sql: "DELETE FROM alert_claims WHERE runner = ?", args: [runner] }]);
    },

    states: (org_id) =>
      database.read<StoredState>("SELECT file, group_name, state FROM rule_states WHERE org_id = ?", [org_id]),

    async putState(org_id, { file, group_name, state }, claim) {
      const outcome = await database.write([
        renewed(org_id, claim),
        {
          sql: `INSERT INTO rule_states (org_id, file, group_name, state) VALUES (?, ?, ?, ?)
                ON CONFLICT (org_id, file, group_name) DO UPDATE SET state = excluded.state`,
          args: [org_id, file, group_name, state],
        },
      ]);
      return outcome.ok;
    },
  };
}

/** The step that fails in a process without the claim. */
export const renewed = (org_id: string, { runner, until }: AlertClaim): Step => ({
  sql: "UPDATE alert_claims SET runner_until = ? WHERE org_id = ? AND runner = ?",
  args: [until, org_id, runner],
  rows: 1,
});
