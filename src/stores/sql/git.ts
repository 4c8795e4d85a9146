import type { GitStore } from "#git/store.ts";
import type { GitApp, GitSettings } from "#git/types.ts";
import { type Database, readOne } from "../database.ts";

export function sqlGitStore(database: Database): GitStore {
  return {
    settings: (app_id) =>
      readOne<GitSettings>(database, "SELECT deploy_branch FROM git_settings WHERE app_id = ?", [app_id]),

    hasApp: async (id) => (await readOne(database, "SELECT 1 FROM apps WHERE id = ?", [id])) !== undefined,

    app: (id) => readOne<GitApp>(database, "SELECT id, name, org_id FROM apps WHERE id = ?", [id]),

    async putSettings(app_id, { deploy_branch }) {
      const outcome = await database.write([
        {
          sql: `INSERT INTO git_settings (app_id, deploy_branch) SELECT id, CAST(? AS TEXT) FROM apps WHERE id = ?
                ON CONFLICT (app_id) DO UPDATE SET deploy_branch = excluded.deploy_branch`,
          args: [deploy_branch, app_id],
          rows: 1,
        },
      ]);
      return outcome.ok;
    },
  };
}
