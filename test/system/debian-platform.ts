/** A platform with real machines whose root file system, image `debian`, is made of Debian packages. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import type { ExitEvent, MachineEvent } from "#machines/types.ts";
import { packageRoot } from "../debian-root.ts";
import { type Answer, type TestPlatform, testPlatform } from "../platform.ts";
import { fixtureImages } from "../rootfs.ts";
import { tempDir, until } from "../support.ts";
import { traces } from "../volumes.ts";
import { nodeIdOf } from "./leaks.ts";

export interface DebianPlatform {
  platform: TestPlatform;
  /** A request about app `web`, which must succeed; what it answers. */
  ask(target: string, body?: object): Promise<Answer["body"]>;
  /** A machine that runs; its id. */
  machine(config: object): Promise<string>;
  events(id: string): Promise<MachineEvent[]>;
  /** How its boots ended, newest first. */
  exits(id: string): Promise<ExitEvent[]>;
  /** Resolves when its log has the line so many times. */
  logged(id: string, line: string, times?: number): Promise<void>;
  close(): Promise<void>;
}

export async function debianPlatform(
  packages: readonly string[],
  env: Record<string, string> = {},
): Promise<DebianPlatform> {
  const dir = tempDir("hangar-debian");
  const data_dir = join(dir, "data");
  const ends: (() => unknown)[] = [];
  const images = fixtureImages({ debian: { layers: [packageRoot(join(dir, "root"), packages)] } });
  const later = { after: (end: () => unknown) => void ends.push(end) };
  const settings = { HANGAR_DRIVER: "runc", HANGAR_DATA_DIR: data_dir, ...env };
  const platform = await testPlatform(later, settings, { images });
  const ask: DebianPlatform["ask"] = async (target, body) => {
    const [method, path] = target.split(" ");
    const answer = await platform.ask(`${method} /v1/apps/web${path}`, body ? { body } : {});
    assert.ok(answer.status < 300, `${target}: ${answer.status} ${answer.text}`);
    return answer.body;
  };
  await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
  const events = async (id: string): Promise<MachineEvent[]> => await ask(`GET /machines/${id}/events?limit=50`);
  return {
    platform,
    ask,
    events,
    async machine(config) {
      const { id } = await ask("POST /machines", { config });
      await ask(`GET /machines/${id}/wait?state=started`);
      return String(id);
    },
    async exits(id) {
      return (await events(id)).flatMap(({ request }) => request?.exit_event ?? []);
    },
    async logged(id, line, times = 1) {
      await until(`machine ${id} has written ${line} ${times} times`, async () => {
        const { lines } = (await ask(`GET /machines/${id}/logs`)) as { lines: { message: string }[] };
        return lines.filter(({ message }) => message === line).length >= times;
      });
    },
    async close() {
      for (const end of ends) await end();
      if (existsSync(join(data_dir, "node_id")))
        await takeDown({ data_dir, node_id: nodeIdOf(data_dir), clock: systemClock, log: silentLog });
      for (const mount of traces(dir).mounts.reverse()) spawnSync("umount", ["--lazy", mount]);
    },
  };
}
