/** A platform with real machines of Debian's packages, and programs in Python that attack from inside them. */
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { packageRoot } from "../debian-root.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { fixtureImages } from "../rootfs.ts";
import { tempDir } from "../support.ts";
import { nodeIdOf } from "./leaks.ts";

export interface DebianMachine {
  id: string;
  app: string;
  private_ip: string;
  private_ipv4: string;
}

export interface DebianMachines {
  platform: TestPlatform;
  data_dir: string;
  /** A started machine; its program does nothing but wait, unless another is given. */
  machine(app: string, config?: object): Promise<DebianMachine>;
  /** What a Python program prints inside a machine. */
  python(machine: DebianMachine, program: string, ...args: string[]): Promise<string>;
  /** Stops the platform, machines running on, and starts it again. */
  restart(env?: Record<string, string>): Promise<void>;
  close(): Promise<void>;
}

const WAIT = ["/usr/bin/python3", "-c", "import signal; signal.pause()"];

export async function debianMachines(
  packages: readonly string[],
  env: Record<string, string> = {},
): Promise<DebianMachines> {
  const data_dir = tempDir();
  const debian = { layers: [packageRoot(tempDir(), packages)] };
  // By its digest too, as a deploy names it.
  const images = fixtureImages({ debian, [`debian@sha256:${"0".repeat(64)}`]: debian });
  const open = (more: Record<string, string>): Promise<TestPlatform> =>
    testPlatform(
      { after: () => {} },
      { HANGAR_DRIVER: "runc", HANGAR_DATA_DIR: data_dir, ...env, ...more },
      { images },
    );
  const made: DebianMachines = {
    platform: await open({}),
    data_dir,
    async machine(app, config = {}) {
      const { platform } = made;
      const guest = { cpus: 1, memory_mb: 256, cpu_kind: "shared" };
      const body = { config: { image: "debian", init: { exec: WAIT }, guest, ...config } };
      const created = await platform.ask(`POST /v1/apps/${app}/machines`, { body });
      assert.equal(created.status, 200, created.text);
      const { id } = created.body as DebianMachine;
      await platform.ask(`GET /v1/apps/${app}/machines/${id}/wait?state=started&timeout=60`);
      const { body: shown, text } = await platform.ask(`GET /v1/apps/${app}/machines/${id}`);
      assert.equal(shown.state, "started", text);
      return { id, app, private_ip: shown.private_ip, private_ipv4: shown.private_ipv4 };
    },
    async python({ app, id }, program, ...args) {
      const command = ["/usr/bin/python3", "-c", program, ...args];
      const { status, body, text } = await made.platform.ask(`POST /v1/apps/${app}/machines/${id}/exec`, {
        body: { command, timeout: 60 },
      });
      assert.equal(status, 200, text);
      assert.equal(body.exit_code, 0, text);
      return String(body.stdout).trim();
    },
    async restart(more = {}) {
      await made.platform.close();
      made.platform = await open(more);
    },
    async close() {
      await made.platform.close();
      if (existsSync(join(data_dir, "node_id")))
        await takeDown({ data_dir, node_id: nodeIdOf(data_dir), clock: systemClock, log: silentLog });
    },
  };
  return made;
}
