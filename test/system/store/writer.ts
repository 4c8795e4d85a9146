/**
 * A program that writes to a store until it is killed or the disk goes: `writer.ts FILE SYNCHRONOUS WRITERS [early]`.
 * Prints `id n nanoseconds` after each write that the store acknowledged; the time is the system-wide
 * monotonic clock, so that another process can say what came before what.
 */
import { writeSync } from "node:fs";
import { flushCompileCache } from "node:module";
import { openSqlite } from "#stores/sqlite/database.ts";
import type { Synchronous } from "#stores/sqlite/open.ts";
import { addCounter, keepCounting, SCHEMA } from "./load.ts";

const [file = "", synchronous = "FULL", writers = "8", early] = process.argv.slice(2);
const database = await openSqlite(file, { synchronous: synchronous as Synchronous });
flushCompileCache(); // Otherwise done at an end that never comes.
const ids = Array.from({ length: Number(writers) }, (_, i) => i + 1);
await database.write([...SCHEMA, ...ids.map(addCounter)]);
// Written at once and past every buffer of ours: a kill right after must not swallow it.
const tell = (id: number, n: number): void => void writeSync(1, `${id} ${n} ${process.hrtime.bigint()}\n`);
await Promise.all(ids.map((id) => keepCounting(database, id, (n) => tell(id, n), early === "early")));
