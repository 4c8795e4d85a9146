/** Builds that have ended: simulated machines cannot build, so they are put where builds are kept. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import pg from "pg";
import type { TestPlatform } from "./platform.ts";

const COLUMNS = "id, app_id, org_id, state, node_id, dockerfile, no_cache, files, bytes, image, created_by, created_at";

/** Adds builds to the app; their ids. `postgres` is the address of the platform's database, if it is one. */
export async function keepBuilds(
  { ask, data_dir }: TestPlatform,
  app_name: string,
  count: number,
  postgres?: string,
): Promise<string[]> {
  const { id: app_id } = (await ask(`GET /v1/apps/${app_name}`)).body as { id: string };
  const ids = Array.from({ length: count }, (_, at) => `b${at + 1}`);
  const org = `(SELECT org_id FROM apps WHERE id = '${app_id}')`;
  const rows = ids.map(
    (id, at) => `('${id}', '${app_id}', ${org}, 'complete', 'n', 'Dockerfile', 0, 0, 0, 'i', 'me', ${at})`,
  );
  const sql = `INSERT INTO builds (${COLUMNS}) VALUES ${rows.join(", ")}`;
  if (postgres) {
    const client = new pg.Client(postgres);
    await client.connect();
    await client.query(sql);
    await client.end();
  } else {
    using database = new DatabaseSync(join(data_dir, "hangar.db"), { timeout: 60_000 });
    database.exec(sql);
  }
  return ids;
}
