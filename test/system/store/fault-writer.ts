/**
 * A program whose disk fails it now and then: `fault-writer.ts DATABASE FILE STEPS [careless]`. It counts up in the
 * database and keeps the number in a file, goes on after every refusal, and prints what it was told is done. Careless, it
 * says so before it is, and writes the file in place.
 */
import { writeFileSync, writeSync } from "node:fs";
import { ApiError } from "#core/errors.ts";
import { writeFileDurably } from "#stores/data-dir.ts";
import { openSqlite } from "#stores/sqlite/database.ts";
import { contentOf, countUp } from "./load.ts";

const [database_file = "", file = "", steps = "1", careless] = process.argv.slice(2);
const tell = (words: string): void => void writeSync(1, `${words}\n`);

async function refused(work: () => Promise<void> | void): Promise<void> {
  try {
    await work();
  } catch (thrown) {
    tell(`refused ${thrown instanceof ApiError ? thrown.code : String((thrown as NodeJS.ErrnoException).code)}`);
  }
}

await refused(async () => {
  const database = await openSqlite(database_file, { onBroken: () => {} });
  const [row] = await database.read<{ n: number }>("SELECT n FROM counters WHERE id = 1");
  let next = (row?.n ?? 0) + 1;
  for (let step = 0; step < Number(steps); step++) {
    await refused(async () => {
      if (careless) tell(`counted ${next}`);
      const { ok } = await database.write(countUp(1, next));
      // It was refused before, so it cannot have happened.
      if (!ok) return tell(`contradicted at ${next}`);
      if (!careless) tell(`counted ${next}`);
      next++;
    });
    await refused(() => {
      if (careless) writeFileSync(file, contentOf(step));
      else writeFileDurably(file, contentOf(step));
      tell(`kept ${step}`);
    });
  }
  await database.close();
});
