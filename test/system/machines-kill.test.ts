/** A real platform killed with -9 while machines are made, started, stopped and leased: nothing acknowledged is lost (M4 on sim, L4). */
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { random, runs, seed, tempDir, until } from "../support.ts";

const root = join(import.meta.dirname, "../..");

interface Told {
  state: string;
  pending?: boolean;
}

class Victim {
  readonly #dir: string;
  readonly #port: number;
  #child: ChildProcess | undefined;

  constructor(dir: string, port: number) {
    this.#dir = dir;
    this.#port = port;
  }

  async start(): Promise<void> {
    const env = {
      ...process.env,
      HANGAR_DATA_DIR: this.#dir,
      HANGAR_LISTEN: `127.0.0.1:${this.#port}`,
      HANGAR_LOG_LEVEL: "error",
      HANGAR_DRIVER: "sim",
    };
    this.#child = spawn(process.execPath, ["src/main.ts"], { cwd: root, env, stdio: ["ignore", "ignore", "inherit"] });
    await until("the platform starts", async () => {
      const up = await fetch(`http://127.0.0.1:${this.#port}/healthz`).catch(() => undefined);
      return up?.ok && existsSync(join(this.#dir, "token"));
    });
  }

  async kill(signal: NodeJS.Signals = "SIGKILL"): Promise<void> {
    const child = this.#child;
    if (!child || child.exitCode !== null || child.signalCode !== null) return;
    const gone = once(child, "exit");
    child.kill(signal);
    await gone;
  }

  /** Undefined when the platform died before it answered. */
  async ask(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: Record<string, unknown> } | undefined> {
    const token = readFileSync(join(this.#dir, "token"), "utf8").trim();
    try {
      const response = await fetch(`http://127.0.0.1:${this.#port}${path}`, {
        method,
        headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      return { status: response.status, body: (await response.json()) as Record<string, unknown> };
    } catch {
      return undefined;
    }
  }
}

test("killed again and again, the platform keeps every acknowledged machine, lease and wish (L4)", async (t) => {
  const next = random(seed(t));
  const victim = new Victim(tempDir(), 21_000 + (process.pid % 20_000));
  t.after(() => victim.kill());
  await victim.start();
  await victim.ask("POST", "/v1/apps", { app_name: "web" });
  const machines = "/v1/apps/web/machines";
  const told = new Map<string, Told>();
  const leases = new Map<string, string>();
  const kills = runs(2, 60);
  /** Makes a machine and, unless it is leased, wishes something of it. False when the platform is gone. */
  const visit = async (): Promise<boolean> => {
    const lease = next() < 0.3 ? { lease_ttl: 3600 } : {};
    const made = await victim.ask("POST", machines, { config: { image: "x" }, ...lease });
    if (!made) return false;
    const { id, nonce } = made.body as { id: string; nonce?: string };
    told.set(id, { state: "started" });
    if (nonce) {
      leases.set(id, nonce);
      return true;
    }
    const [verb, state] = next() < 0.5 ? ["stop", "stopped"] : ["suspend", "suspended"];
    // Until it is acknowledged either outcome is right.
    told.set(id, { state, pending: true });
    if (!(await victim.ask("POST", `${machines}/${id}/${verb}`))) return false;
    told.set(id, { state });
    return true;
  };
  const client = async (): Promise<void> => {
    while (await visit());
  };
  for (let kill = 0; kill < kills; kill++) {
    const clients = Array.from({ length: 8 }, client);
    await delay(300 + Math.floor(next() * 700));
    await victim.kill();
    await Promise.all(clients);
    await victim.start();
  }
  let lost = 0;
  for (const [id, { state, pending }] of told) {
    const settled = await victim.ask("GET", `${machines}/${id}/wait?state=settled&timeout=20`);
    assert.equal(settled?.status, 200, `${id} settles`);
    const machine = (await victim.ask("GET", `${machines}/${id}`))?.body ?? {};
    const right = machine["state"] === state || (pending && machine["state"] === "started");
    if (!right) lost++;
    if (leases.has(id)) assert.equal(machine["nonce"], leases.get(id), "its lease is still held");
  }
  assert.equal(lost, 0, "wishes that were acknowledged and not carried out");
  await victim.kill("SIGTERM");
  t.diagnostic(`${kills} kills, ${told.size} machines acknowledged, ${leases.size} leases, 0 lost`);
  assert.ok(told.size > kills * 5);
});
