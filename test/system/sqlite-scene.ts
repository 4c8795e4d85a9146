/** A platform with real machines for tests of `config.sqlite`: images with and without a libc, and SQLite's own programs. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { cpSync, existsSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { packageRoot } from "../debian-root.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { busyboxLayer } from "../rootfs.ts";
import { shell, tempDir, until } from "../support.ts";
import { traces } from "../volumes.ts";
import { ROOT } from "./child.ts";
import { nodeIdOf } from "./leaks.ts";

/** Debian's, which know nothing of this project. */
export const WRITERS = ["sqlite3", "python3"];

export interface NodeLine {
  machine_id: string;
  node: { primary: boolean; term: number; databases: Record<string, string> } | null;
  reason: string;
}

/** An application that makes its table when it starts, as many do. */
const PROGRAM = `echo "the program starts"
sqlite3 -cmd ".timeout 5000" /data/app.db "PRAGMA journal_mode=WAL; CREATE TABLE IF NOT EXISTS t (n INTEGER PRIMARY KEY, who TEXT)"
exec sleep 1000000`;

export class SqliteScene {
  readonly cwd = tempDir();
  readonly platform: TestPlatform;
  readonly #data_dir: string;

  private constructor(platform: TestPlatform, data_dir: string) {
    this.platform = platform;
    this.#data_dir = data_dir;
  }

  static async open(t: { after(end: () => unknown): void }): Promise<SqliteScene> {
    const data_dir = tempDir();
    const platform = await testPlatform(t, { HANGAR_DRIVER: "runc", HANGAR_DATA_DIR: data_dir });
    t.after(async () => {
      await platform.close();
      if (existsSync(join(data_dir, "node_id")))
        await takeDown({ data_dir, node_id: nodeIdOf(data_dir), clock: systemClock, log: silentLog });
      for (const mount of traces(data_dir).mounts.reverse()) spawnSync("umount", ["--lazy", mount]);
    });
    return new SqliteScene(platform, data_dir);
  }

  get data_dir(): string {
    return this.#data_dir;
  }

  /** `debian` has glibc, Python and the sqlite3 command; `box` a static busybox; `scratch` one static program alone. */
  async image(name: "debian" | "box" | "scratch"): Promise<void> {
    const root = join(this.cwd, name);
    mkdirSync(root, { recursive: true });
    if (name === "debian") packageRoot(root, [...WRITERS, "coreutils", "dash"]);
    else if (name === "box") busyboxLayer(root);
    else cpSync("/usr/bin/busybox", join(root, "busybox"));
    if (name === "debian") writeFileSync(join(root, "program.sh"), PROGRAM);
    await this.ok(`images import ${name}:1 ${root}`);
  }

  hangar(line: string): ReturnType<typeof shell> {
    return shell(`"${process.execPath}" "${join(ROOT, "bin/hangar.mjs")}" ${line}`, {
      cwd: this.cwd,
      HOME: this.cwd,
      HANGAR_DATA_DIR: this.#data_dir,
    });
  }

  async ok(line: string): Promise<string> {
    const { status, stdout, stderr } = await this.hangar(line);
    assert.equal(status, 0, `${line}: ${stdout}${stderr}`);
    return stdout + stderr;
  }

  // biome-ignore lint/suspicious/noExplicitAny: tests look into answers of every shape.
  async ask(target: string, body?: object): Promise<any> {
    const answer = await this.platform.ask(target, body ? { body } : {});
    assert.ok(answer.status < 300, `${target}: ${answer.text}`);
    return answer.body;
  }

  /** A machine with a volume of its own at /data, and a node. */
  async machine(app: string, image: string, cmd: readonly string[], more: object = {}): Promise<string> {
    const path = `/v1/apps/${app}`;
    const volume = await this.ask(`POST ${path}/volumes`, { name: "data", size_gb: 1, require_unique_zone: false });
    const config = {
      image,
      init: { exec: cmd },
      mounts: [{ volume: volume.id, path: "/data" }],
      sqlite: { dir: "/data" },
      ...more,
    };
    const { id } = await this.ask(`POST ${path}/machines`, { config });
    await this.ask(`GET ${path}/machines/${id}/wait?timeout=60`);
    return id as string;
  }

  /** What a command in a machine prints; fails when it fails. */
  async inside(app: string, id: string, command: readonly string[]): Promise<string> {
    const answer = await this.ask(`POST /v1/apps/${app}/machines/${id}/exec`, { command, timeout: 30 });
    assert.equal(answer.exit_code, 0, `${command.join(" ")}: ${answer.stdout}${answer.stderr}`);
    return (answer.stdout as string).trim();
  }

  sqlite(app: string, id: string, sql: string): Promise<string> {
    return this.inside(app, id, ["sqlite3", "-cmd", ".timeout 5000", "/data/app.db", sql]);
  }

  /** What Python's own module finds. */
  python(app: string, id: string, sql: string): Promise<string> {
    const script = `import sqlite3; print(*[r[0] for r in sqlite3.connect("file:/data/app.db?mode=ro", uri=True).execute("""${sql}""")])`;
    return this.inside(app, id, ["python3", "-c", script]);
  }

  async nodes(app: string): Promise<NodeLine[]> {
    const { stdout, stderr } = await this.hangar(`sqlite status ${app} --json`);
    assert.equal(stderr, "", "a node that does not respond is in the table alone");
    return (JSON.parse(stdout) as { nodes: NodeLine[] }).nodes;
  }

  /** The primary's machine, once one of these is, and all have a node. */
  async primary(app: string, of: readonly string[]): Promise<string> {
    return await until(`one of ${of.join(", ")} is primary, and all have a node`, async () => {
      const nodes = (await this.nodes(app)).filter(({ machine_id }) => of.includes(machine_id));
      const [first, ...more] = nodes.filter(({ node }) => node?.primary);
      return nodes.every(({ node }) => node) && more.length === 0 ? first?.machine_id : undefined;
    });
  }

  /** Waits until every node has the primary's position of the database. */
  async alike(app: string, count: number): Promise<void> {
    await until(`${count} nodes of ${app} have the same position`, async () => {
      const positions = (await this.nodes(app)).map(({ node }) => node?.databases["app.db"]);
      return positions.length === count && positions[0] !== undefined && new Set(positions).size === 1;
    });
  }

  async logs(app: string, id: string): Promise<string> {
    const { lines } = await this.ask(`GET /v1/apps/${app}/machines/${id}/logs?tail=500`);
    return (lines as { message: string }[]).map(({ message }) => message).join("\n");
  }
}
