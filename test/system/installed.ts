/** A platform as people run it, a program of its own with real machines, that is handled by the `hangar` command. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { shell, tempDir } from "../support.ts";
import { traces } from "../volumes.ts";
import { ROOT, startProgram } from "./child.ts";
import { census, nodeIdOf } from "./leaks.ts";

const HANGAR = `hangar() { "${process.execPath}" "${join(ROOT, "bin/hangar.mjs")}" "$@"; }`;

export interface Installed {
  data_dir: string;
  /** A machine that runs, with an encrypted volume that is mounted. */
  machine: string;
  volume: string;
  hangar(line: string): ReturnType<typeof shell>;
}

/** A platform as people run it, as a program of its own, with one machine and one encrypted volume. */
export async function install(t: Pick<TestContext, "after">): Promise<Installed> {
  const data_dir = join(tempDir("hangar-down"), "data");
  const hangar = (line: string) =>
    shell(`${HANGAR}\nhangar ${line}`, { cwd: join(data_dir, ".."), HANGAR_DATA_DIR: data_dir });
  // Whatever fails: a test leaves no machine, and no mount.
  t.after(async () => {
    await hangar("down --all");
    for (const mount of traces(data_dir).mounts.reverse()) spawnSync("umount", ["--lazy", mount]);
  });
  const daemon = startProgram(
    { after: () => {} },
    "src/main.ts",
    "--driver runc --listen 127.0.0.1:0 --data-dir".split(" ").concat(data_dir),
  );
  t.after(() => daemon.kill());
  await daemon.until(/ is ready /);
  const token = readFileSync(join(data_dir, "token"), "utf8").trim();
  const base_url = readFileSync(join(data_dir, "address"), "utf8").trim();
  const call = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
    const response = await fetch(`${base_url}/v1/apps${path}`, {
      method,
      headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    const text = await response.text();
    assert.ok(response.ok, text);
    return JSON.parse(text) as Record<string, unknown>;
  };
  await call("POST", "", { app_name: "web" });
  const volume = await call("POST", "/web/volumes", { name: "data", size_gb: 1, encrypted: true });
  const mount = { volume: volume["id"], path: "/data" };
  const made = await call("POST", "/web/machines", { config: { image: "hangar/hello", mounts: [mount] } });
  await call("GET", `/web/machines/${String(made["id"])}/wait?state=started&timeout=60`);
  assert.equal(volume["encrypted"], true);
  return { data_dir, machine: String(made["id"]), volume: String(volume["id"]), hangar };
}

/** What is left of it in the kernel; folders of machines stay on the disk. */
export const left = (data_dir: string): object => {
  const { machines: _, ...found } = census({ data_dir, node_id: nodeIdOf(data_dir) });
  return found;
};
