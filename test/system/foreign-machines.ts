/** Machines from images that other programs made: a platform with real containers, and what its machines say. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { createReadStream, existsSync } from "node:fs";
import { join } from "node:path";
import { Readable } from "node:stream";
import type { TestContext } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { type Answer, type TestPlatform, testPlatform } from "../platform.ts";
import { tempDir } from "../support.ts";
import { nodeIdOf } from "./leaks.ts";

export interface ForeignMachines extends TestPlatform {
  /** Imports a file, or bytes; answers what the API answered. */
  bring(name: string, what: string | Buffer): Promise<Answer>;
  /** A started machine, gone with the test. */
  run(t: Pick<TestContext, "after">, config: { image: string; init?: object }): Promise<string>;
  /** What a shell command in the machine writes. */
  sh(id: string, command: string): Promise<string>;
}

/** Has the app `web`. However the tests end, its machines go away. */
export async function foreignMachines(
  t: Pick<TestContext, "after">,
  env: Record<string, string> = {},
): Promise<ForeignMachines> {
  const data_dir = tempDir();
  const ends: (() => unknown)[] = [];
  const later = { after: (end: () => unknown) => void ends.push(end) };
  t.after(async () => {
    for (const end of ends) await end();
    if (existsSync(join(data_dir, "node_id")))
      await takeDown({ data_dir, node_id: nodeIdOf(data_dir), clock: systemClock, log: silentLog });
  });
  const platform = await testPlatform(later, { HANGAR_DRIVER: "runc", HANGAR_DATA_DIR: data_dir, ...env });
  const { ask } = platform;
  await ask("POST /v1/apps", { body: { app_name: "web" } });
  const path = "/v1/apps/web/machines";
  return {
    ...platform,
    async bring(name, what) {
      const body = typeof what === "string" ? Readable.toWeb(createReadStream(what)) : new Uint8Array(what);
      const response = await fetch(`${platform.base_url}/v1/images/import?name=${name}`, {
        method: "POST",
        headers: { authorization: `Bearer ${platform.token}`, "content-type": "application/x-tar" },
        body,
        duplex: "half",
      } as RequestInit);
      const text = await response.text();
      return { status: response.status, headers: {}, text, body: JSON.parse(text) };
    },
    async run(test, given) {
      const config = { guest: { cpu_kind: "shared", cpus: 1, memory_mb: 256 }, restart: { policy: "no" }, ...given };
      const { status, body, text } = await ask(`POST ${path}`, { body: { config } });
      assert.equal(status, 200, text);
      test.after(() => ask(`DELETE ${path}/${body.id}?force=true`));
      const waited = await ask(`GET ${path}/${body.id}/wait?state=started&timeout=60`);
      const { events } = (await ask(`GET ${path}/${body.id}`)).body;
      assert.equal(waited.status, 200, `${waited.text} ${JSON.stringify(events)}`);
      return body.id as string;
    },
    async sh(id, command) {
      const { body, text } = await ask(`POST ${path}/${id}/exec`, { body: { command: ["/bin/sh", "-c", command] } });
      assert.equal(body.exit_code, 0, text.slice(0, 2000));
      return body.stdout as string;
    },
  };
}

export function command(name: string, ...args: string[]): string {
  const { status, stdout, stderr } = spawnSync(name, args, { encoding: "utf8", maxBuffer: 2 ** 28 });
  assert.equal(status, 0, `${name} ${args.join(" ")}: ${stderr || stdout}`);
  return stdout;
}
