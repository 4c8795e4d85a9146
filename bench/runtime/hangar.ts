/** Hangar as people run it: a process of its own, machines of the runc driver, everything over its API. */
import { type ChildProcess, spawn } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { type Ask, asker } from "../load/ask.ts";
import { end, until } from "../processes.ts";
import { COMMAND, type Engine, type Ground, MEMORY_MB, processesOf, run } from "./engine.ts";

const root = join(import.meta.dirname, "../..");
const APP = "/v1/apps/bench/machines";

export interface Hangar extends Engine {
  ask: Ask;
  /** How the time of the starts, or resumes, so far divided, in milliseconds by step. */
  timings(of?: "started" | "been resumed"): Record<string, number>[];
  /** Resolves with its id when it runs. */
  create(name: string, image: string, command?: readonly string[], memory_mb?: number): Promise<string>;
  wait(id: string, state: string): Promise<void>;
}

/** Ten times a second: a busy box takes its time. */
const LISTEN_TRIES = 3000;

export async function openHangar({ dir, tar }: Ground, settings: readonly string[] = []): Promise<Hangar> {
  const args = [
    "src/main.ts",
    "--data-dir",
    dir,
    "--listen",
    "127.0.0.1:0",
    "--driver",
    "runc",
    "--log-level",
    "debug",
    ...settings,
  ];
  const child = spawn(process.execPath, args, { cwd: root, stdio: "ignore" });
  const listening = async (): Promise<void> => {
    if (!existsSync(join(dir, "address"))) throw new Error("it does not listen yet");
  };
  await until("hangar", listening, LISTEN_TRIES);
  const address = readFileSync(join(dir, "address"), "utf8").trim();
  const token = readFileSync(join(dir, "token"), "utf8").trim();
  const ask = asker({ port: Number(new URL(address).port) }, token);
  await until("hangar", () => ask("GET", "/healthz"));
  const url = `${address}/v1/images/import?name=bench:1`;
  const headers = ["-H", `authorization: Bearer ${token}`, "-H", "content-type: application/x-tar"];
  await run("curl", "-sSf", "-X", "POST", ...headers, "--data-binary", `@${tar}`, url);
  await ask("POST", "/v1/apps", { app_name: "bench" });
  return engine(child, dir, ask);
}

function engine(child: ChildProcess, dir: string, ask: Ask): Hangar {
  const ids = new Map<string, string>();
  const idOf = (name: string): string => ids.get(name) ?? name;
  const wait = async (id: string, state: string): Promise<void> => {
    const { instance_id } = JSON.parse(await ask("GET", `${APP}/${id}`)) as { instance_id: string };
    await ask("GET", `${APP}/${id}/wait?state=${state}&instance_id=${instance_id}&timeout=60`);
  };
  const create: Hangar["create"] = async (name, image, command, memory_mb = MEMORY_MB) => {
    const init = command ? { init: { exec: command } } : {};
    const guest = { cpu_kind: "shared", cpus: 1, memory_mb };
    const restart = { policy: "no" };
    const made = await ask("POST", APP, { name, config: { image, guest, restart, ...init } });
    const { id, instance_id } = JSON.parse(made) as { id: string; instance_id: string };
    ids.set(name, id);
    await ask("GET", `${APP}/${id}/wait?state=started&instance_id=${instance_id}&timeout=60`);
    return id;
  };
  return {
    name: "Hangar",
    note: "user namespace, own disk, own network, log, durable state",
    shims: ["monitor"],
    mark: readFileSync(join(dir, "node_id"), "utf8").trim(),
    daemons: () => [child.pid ?? 0],
    ask,
    create,
    wait,
    async start(name) {
      await create(name, "bench:1", COMMAND);
    },
    async stop(name) {
      await ask("POST", `${APP}/${idOf(name)}/stop`, { signal: "SIGTERM" });
      await wait(idOf(name), "stopped");
    },
    async remove(name) {
      await ask("DELETE", `${APP}/${idOf(name)}?force=true`);
    },
    list: () => ask("GET", APP),
    timings(of = "started") {
      const lines = readFileSync(join(dir, "hangar.log"), "utf8").split("\n");
      return lines.filter((line) => line.includes(`a machine has ${of}`)).map(timingsOf);
    },
    async close() {
      await end(child);
      const args = ["bin/hangar.mjs", "down", "--all", "--data-dir", dir];
      await run(process.execPath, ...args.map((arg, i) => (i === 0 ? join(root, arg) : arg)));
      while (processesOf(["monitor"], dir).length > 0) await pause(50);
    },
  };
}

function timingsOf(line: string): Record<string, number> {
  const {
    level: _level,
    time: _time,
    msg: _msg,
    machine: _machine,
    ...laps
  } = JSON.parse(line) as Record<string, unknown>;
  return Object.fromEntries(
    Object.entries(laps).filter((pair): pair is [string, number] => typeof pair[1] === "number"),
  );
}
