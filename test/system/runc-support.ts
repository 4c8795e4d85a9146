/** A platform with real machines as a process of its own, that a test may kill and start again. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { until } from "../support.ts";
import { traces } from "../volumes.ts";
import { type Child, startProgram } from "./child.ts";
import { type Installation, nodeIdOf } from "./leaks.ts";

export interface Caller {
  /** Undefined when the platform died before it answered. */
  ask(
    method: string,
    path: string,
    body?: unknown,
  ): Promise<{ status: number; body: Record<string, unknown> } | undefined>;
}

export interface RealPlatform {
  dir: string;
  data_dir: string;
  /** A folder here is an image of the same name. */
  images: string;
  start(): Promise<Caller>;
  kill(): Promise<void>;
  stop(): Promise<void>;
  pid(): number;
  installation(): Installation;
}

/** However the test ends, its machines and all that belongs to them go away. */
export function realPlatform(t: Pick<TestContext, "after">, env: NodeJS.ProcessEnv = {}): RealPlatform {
  const dir = mkdtempSync(join(tmpdir(), "hangar-real-"));
  const [data_dir, images] = [join(dir, "data"), join(dir, "images")];
  mkdirSync(images);
  let child: Child | undefined;
  const installation = (): Installation => ({ data_dir, node_id: nodeIdOf(data_dir) });
  t.after(async () => {
    await child?.kill();
    if (existsSync(join(data_dir, "node_id")))
      await takeDown({ ...installation(), clock: systemClock, log: silentLog });
    // Volumes stay mounted while their platform may come back. The last one mounted goes first, its loop device with it.
    for (const mount of traces(dir).mounts.reverse()) spawnSync("umount", ["--lazy", mount]);
    rmSync(dir, { recursive: true, force: true });
  });
  return {
    dir,
    data_dir,
    images,
    async start() {
      child = startProgram({ after: () => {} }, "test/system/runc-daemon.ts", [data_dir, images], env);
      const base_url = (await child.until(/^ready /)).slice("ready ".length);
      const token = readFileSync(join(data_dir, "token"), "utf8").trim();
      return callerOf(base_url, token);
    },
    async kill() {
      await child?.kill();
    },
    async stop() {
      child?.signal("SIGTERM");
      await child?.ended;
    },
    pid: () => child?.pid ?? 0,
    installation,
  };
}

export const callerOf = (base_url: string, token: string): Caller => ({
  ask: (method, path, body) => ask(base_url, token, method, path, body),
});

/** What is answered, which must be a success. A request that a busy box took too long to send was not begun: again. */
export async function must(
  { ask }: Caller,
  method: string,
  path: string,
  body?: object,
): Promise<Record<string, unknown>> {
  const answer = await until(`${method} ${path} arrives`, async () => {
    const found = await ask(method, path, body);
    return found?.body["status"] === "request_timeout" ? undefined : (found ?? assert.fail(`${method} ${path}: gone`));
  });
  assert.ok(answer.status < 300, `${method} ${path}: ${JSON.stringify(answer)}`);
  return answer.body;
}

async function ask(base_url: string, token: string, method: string, path: string, body: unknown) {
  try {
    const response = await fetch(`${base_url}${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    return { status: response.status, body: (text === "" ? {} : JSON.parse(text)) as Record<string, unknown> };
  } catch {
    return undefined;
  }
}
