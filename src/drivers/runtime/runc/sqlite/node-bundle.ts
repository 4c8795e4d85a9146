/**
 * The SQLite node as plain JavaScript that needs no other file of the project: a package brings it in `dist/db-node`, a
 * checkout makes it from its sources.
 */
import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { messageOf } from "#core/assert.ts";
import { program } from "../../../linux/program.ts";

const ROOT = join(import.meta.dirname, "../../../../..");
const PACKED = join(ROOT, "dist/db-node");
const BUNDLER = join(ROOT, "scripts/bundle-node.mjs");

/** Contents by file name. */
export async function nodeBundle(): Promise<Map<string, string>> {
  if (existsSync(PACKED)) return filesIn(PACKED);
  const folder = mkdtempSync(join(tmpdir(), "hangar-db-node-"));
  try {
    await program(process.execPath, [BUNDLER, folder]);
    return filesIn(folder);
  } catch (thrown) {
    throw new Error(`the SQLite node could not be made from its sources: ${messageOf(thrown)}`, { cause: thrown });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

const filesIn = (folder: string): Map<string, string> =>
  new Map(
    readdirSync(folder)
      .toSorted()
      .map((name) => [name, readFileSync(join(folder, name), "utf8")]),
  );
