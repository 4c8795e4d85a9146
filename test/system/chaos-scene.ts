/**
 * A whole platform for the chaos test: real machines with volumes behind the edge proxy, its state in PostgreSQL, its
 * metrics in VictoriaMetrics, its files on a small disk of their own and its wall clock in a file.
 */
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, globSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { freePort } from "#proxy/fixtures.ts";
import { ENGINES, whyNot } from "../../bench/metrics/engines.ts";
import { postgresMissing, startPostgres } from "../postgres.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { traces, volumesMissing } from "../volumes.ts";
import { type Child, startProgram } from "./child.ts";
import { Ext4 } from "./ext4.ts";
import { type Installation, nodeIdOf } from "./leaks.ts";

const DISK_MIB = 2048;
const [FAKETIME] = globSync("/usr/lib/*/faketime/libfaketimeMT.so.1");

/** Why there can be no such platform here, or undefined. */
export const chaosMissing = (): string | undefined =>
  realMachinesMissing() ??
  volumesMissing() ??
  postgresMissing() ??
  whyNot("victoria-metrics") ??
  (FAKETIME ? undefined : "libfaketime is not installed (package faketime)");

/**
 * What runs in a machine: appends the path it is asked for to a file in its volume and answers when that is on the disk,
 * with the app it belongs to, its own name, and a word that is another one after each start.
 */
export const PROGRAM = `
const { openSync, writeSync, fsyncSync, closeSync } = require("node:fs");
const start = Math.random().toString(36).slice(2);
require("node:http").createServer((asked, answer) => {
  try {
    const file = openSync("/data/log", "a");
    try { writeSync(file, asked.url + "\\n"); fsyncSync(file); } finally { closeSync(file); }
    answer.end(JSON.stringify({ app: process.env.APP, machine: process.env.SVC_MACHINE_ID, start }));
  } catch (error) {
    answer.writeHead(507).end(String(error));
  }
}).listen(8080, "::");
process.on("SIGTERM", () => process.exit(0));
`;

/** A way to a server that can be cut, as if the server were gone. */
class Relay {
  port = 0;
  readonly #server = createServer((from) => this.#pass(from));
  readonly #sockets = new Set<Socket>();
  readonly #to: number;
  open = true;

  constructor(to: number) {
    this.#to = to;
  }

  async start(t: Pick<TestContext, "after">): Promise<void> {
    await once(this.#server.listen(0, "127.0.0.1"), "listening");
    this.port = (this.#server.address() as AddressInfo).port;
    t.after(() => {
      this.cut();
      this.#server.close();
    });
  }

  cut(): void {
    this.open = false;
    for (const socket of this.#sockets) socket.destroy();
  }

  #pass(from: Socket): void {
    if (!this.open) return void from.destroy();
    const to = connect(this.#to, "127.0.0.1");
    for (const socket of [from, to]) {
      this.#sockets.add(socket);
      socket.on("error", () => {}).on("close", () => this.#sockets.delete(socket));
    }
    from.pipe(to).pipe(from);
  }
}

/** A registry that takes connections and never says a word. */
async function silentRegistry(t: Pick<TestContext, "after">): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => void sockets.add(socket.on("error", () => {})));
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

export interface Scene {
  /** Where the edge proxy is. */
  port: number;
  disk: Ext4;
  registry: string;
  victoria: Relay;
  database: Awaited<ReturnType<typeof startPostgres>>;
  /** Starts the platform, or starts it again. */
  start(): Promise<void>;
  kill(): Promise<void>;
  stop(): Promise<void>;
  /** Moves the wall clock of the platform from where it really is. */
  clock(seconds: number): void;
  /** Undefined when nobody answered. */
  ask(method: string, path: string, body?: unknown, key?: string): Promise<Answer | undefined>;
  installation(): Installation;
}

interface Answer {
  status: number;
  body: Record<string, unknown>;
}

/** Removes everything that was created for the test, however it ends. */
export async function openScene(t: TestContext): Promise<Scene> {
  const database = await startPostgres();
  t.after(() => database.stop());
  const engine = await ENGINES["victoria-metrics"]();
  t.after(() => engine.stop());
  const victoria = new Relay(Number(new URL(engine.base).port));
  await victoria.start(t);
  let child: Child | undefined;
  let data_dir = "";
  const installation = (): Installation => ({ data_dir, node_id: nodeIdOf(data_dir) });
  // Before the disk is asked for, since these run in order: what is on it goes before it does.
  t.after(async () => {
    await child?.kill();
    if (existsSync(join(data_dir, "node_id")))
      await takeDown({ ...installation(), clock: systemClock, log: silentLog });
    for (const mount of traces(data_dir).mounts.reverse()) spawnSync("umount", ["--lazy", mount]);
  });
  const disk = new Ext4(t, DISK_MIB);
  data_dir = join(disk.path, "data");
  mkdirSync(data_dir);
  const clock_file = join(disk.path, "../clock");
  const clock = (seconds: number): void => writeFileSync(clock_file, `${seconds < 0 ? "" : "+"}${seconds}\n`);
  clock(0);
  const registry = await silentRegistry(t);
  const env = {
    HANGAR_REGISTRY_ALLOW_PRIVATE: registry,
    HANGAR_DATABASE_URL: await database.database(),
    HANGAR_METRICS_URL: `http://127.0.0.1:${victoria.port}`,
    HANGAR_LOG_LEVEL: "error",
    LD_PRELOAD: FAKETIME,
    FAKETIME_TIMESTAMP_FILE: clock_file,
    FAKETIME_NO_CACHE: "1",
    FAKETIME_DONT_FAKE_MONOTONIC: "1",
  };
  let [base_url, token] = ["", ""];
  return {
    port: await freePort(),
    disk,
    registry,
    victoria,
    database,
    clock,
    installation,
    async start() {
      const args = ["--data-dir", data_dir, "--listen", "127.0.0.1:0", "--driver", "runc"];
      child = startProgram({ after: () => {} }, "src/main.ts", args, env);
      base_url = /(http:\S+)/.exec(await child.until(/^ +API /))?.[1] ?? "";
      token = readFileSync(join(data_dir, "token"), "utf8").trim();
    },
    kill: async () => void (await child?.kill()),
    async stop() {
      child?.signal("SIGTERM");
      await child?.ended;
    },
    async ask(method, path, body, key) {
      const headers = { authorization: `Bearer ${token}`, ...(key ? { "idempotency-key": key } : {}) };
      const sent = body === undefined ? {} : { body: JSON.stringify(body) };
      const type = body === undefined ? {} : { "content-type": "application/json" };
      try {
        const response = await fetch(`${base_url}${path}`, { method, headers: { ...headers, ...type }, ...sent });
        const text = await response.text();
        return { status: response.status, body: (text === "" ? {} : JSON.parse(text)) as Answer["body"] };
      } catch {
        return undefined;
      }
    },
  };
}

/** A request that is repeated under one key until it is answered with yes; how long that took is no matter. */
export async function insist({ ask }: Scene, method: string, path: string, body?: unknown): Promise<Answer["body"]> {
  const key = crypto.randomUUID();
  let last: Answer | undefined;
  return await until(
    `${method} ${path}`,
    async () => {
      last = await ask(method, path, body, key);
      if (last && last.status >= 400 && last.status < 500 && last.status !== 408 && last.status !== 409)
        throw new Error(`${method} ${path}: ${JSON.stringify(last)}`);
      return last && last.status < 300 && last.body;
    },
    { every_ms: 100 },
  );
}

/** Processes of the program above, by the machine they run in, as the kernel has them. */
export function programs(): Map<string, number> {
  const found = new Map<string, number>();
  for (const pid of readdirSync("/proc").filter((name) => /^\d+$/.test(name))) {
    try {
      if (!readFileSync(`/proc/${pid}/cmdline`, "utf8").includes("asked.url")) continue;
      const machine = /SVC_MACHINE_ID=(\w+)/.exec(readFileSync(`/proc/${pid}/environ`, "utf8"))?.[1];
      if (machine) found.set(machine, (found.get(machine) ?? 0) + 1);
    } catch {
      // It ended while it was looked at.
    }
  }
  return found;
}
