/** Applications that are not ours: Debian's sqlite3 and Python's sqlite3, as processes beside the nodes. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { until } from "../support.ts";
import { Child } from "./child.ts";
import { freePort, info, type NodeInfo, type Process, Stage } from "./replication-support.ts";

/** Why these tests cannot run here, or undefined. */
export const appsMissing = (): string | undefined =>
  ["sqlite3", "python3"].every((program) => spawnSync(program, ["--version"]).status === 0)
    ? undefined
    : "there is no sqlite3 or python3 (apt-get install sqlite3 python3)";

/** Runs SQL with the sqlite3 command; answers what it prints. Fails with its words. */
export function sqlite(path: string, sql: string, timeout_ms = 10_000): string {
  const { status, stdout, stderr } = spawnSync("sqlite3", ["-cmd", `.timeout ${timeout_ms}`, path, sql], {
    encoding: "utf8",
  });
  if (status !== 0 || stderr !== "") throw new Error(`sqlite3: ${stderr || `exit ${status}`}`);
  return stdout.trim();
}

/** A table of notes with so many rows. */
export function makeNotes(path: string, rows: number, page_size = 4096): void {
  sqlite(
    path,
    `PRAGMA page_size = ${page_size}; PRAGMA journal_mode = WAL; CREATE TABLE notes (n INTEGER PRIMARY KEY, text);
    WITH RECURSIVE s(v) AS (SELECT 1 UNION ALL SELECT v + 1 FROM s WHERE v < ${rows})
    INSERT INTO notes SELECT v, hex(randomblob(50)) FROM s`,
  );
}

export const addNote = (path: string, text = "one more"): string =>
  sqlite(path, `INSERT INTO notes (text) VALUES ('${text}')`);

/** How many notes a reader finds, and whether the file is whole; undefined while there is none. */
export function notes(path: string): { rows: number; whole: boolean } | undefined {
  const query = "SELECT count(*) FROM notes; PRAGMA integrity_check";
  const { status, stdout } = spawnSync("sqlite3", ["-readonly", "-cmd", ".timeout 5000", path, query], {
    encoding: "utf8",
  });
  const [rows, verdict] = stdout.trim().split("\n");
  return status === 0 ? { rows: Number(rows), whole: verdict === "ok" } : undefined;
}

const PROGRAM = `
import sqlite3, sys
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=10)
for line in sys.stdin:
    try:
        rows = connection.execute(line).fetchall()
        print("ok", rows, flush=True)
    except sqlite3.Error as error:
        print("error", error, flush=True)
`;

/** A program in Python that keeps one connection and runs statements on command. */
export class PythonApp {
  readonly #child: Child;
  #answers = 0;

  constructor(stage: Stage, path: string) {
    this.#child = new Child("python3", ["-u", "-c", PROGRAM, path]);
    stage.later(() => this.end());
  }

  /** The answer to one statement: `ok …` or `error …`. */
  async run(sql: string): Promise<string> {
    this.#child.send(sql.replaceAll("\n", " "));
    const wanted = ++this.#answers;
    return await until(`Python answers ${sql}`, () => this.#child.lines[wanted - 1]);
  }

  async end(): Promise<void> {
    await this.#child.kill();
  }
}

export interface Pair {
  stage: Stage;
  dirs: { primary: string; replica: string };
  ports: { primary: number; replica: number };
  start(which: "primary" | "replica"): Promise<Process>;
  info(which: "primary" | "replica"): Promise<NodeInfo | undefined>;
  /** The path of a database on one of the nodes. */
  path(which: "primary" | "replica", name: string): string;
  /** Waits until both have the same position for a database, and the replica's file that many notes. */
  caughtUp(name: string, rows: number): Promise<void>;
}

/** A primary and its replica, as processes that can be killed and started again. */
export async function nodePair(t: TestContext, dir?: string): Promise<Pair> {
  const stage = new Stage(t);
  const dirs = { primary: dir ?? stage.dir(), replica: stage.dir() };
  const ports = { primary: await freePort(), replica: await freePort() };
  const path = (which: "primary" | "replica", name: string): string => join(dirs[which], name);
  const infoOf = (which: "primary" | "replica"): Promise<NodeInfo | undefined> => info(ports[which]);
  return {
    stage,
    dirs,
    ports,
    path,
    info: infoOf,
    async start(which) {
      const role = which === "primary" ? ["--primary"] : ["--join", `http://127.0.0.1:${ports.primary}`];
      const node = stage.node(dirs[which], ports[which], ...role);
      await until(`the ${which} answers`, async () => (await infoOf(which)) !== undefined);
      return node;
    },
    async caughtUp(name, rows) {
      await until(`both have ${rows} notes in ${name}`, async () => {
        const [here, there] = [await infoOf("primary"), await infoOf("replica")];
        const position = here?.databases[name];
        return (
          position !== undefined &&
          position === there?.databases[name] &&
          notes(path("replica", name))?.rows === rows &&
          notes(path("primary", name))?.rows === rows
        );
      });
    },
  };
}
