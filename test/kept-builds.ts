/** Builds that have ended: simulated machines cannot build, so they are put where builds are kept. */
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import type { TestPlatform } from "./platform.ts";

const COLUMNS = "id, app_id, org_id, state, node_id, dockerfile, no_cache, files, bytes, image, created_by, created_at";

/** Adds builds to the app; their ids. */
export async function keepBuilds({ ask, data_dir }: TestPlatform, app_name: string, count: number): Promise<string[]> {
  const { id: app_id } = (await ask(`GET /v1/apps/${app_name}`)).body as { id: string };
  using database = new DatabaseSync(join(data_dir, "hangar.db"), { timeout: 60_000 });
  const row = database.prepare(
    `INSERT INTO builds (${COLUMNS}) VALUES (?, ?, 'o', 'complete', 'n', 'Dockerfile', 0, 0, 0, 'i', 'me', ?)`,
  );
  const ids = Array.from({ length: count }, (_, at) => `b${at + 1}`);
  for (const [at, id] of ids.entries()) row.run(id, app_id, at);
  return ids;
}
