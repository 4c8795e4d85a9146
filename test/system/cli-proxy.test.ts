/** `hangar proxy` as a command: what it prints, what goes through it, and how it ends. */
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { suite, test } from "node:test";
import { testPlatform } from "../platform.ts";
import { shell, tempDir } from "../support.ts";
import { ROOT } from "./child.ts";

const PROGRAM = join(ROOT, "bin/hangar.mjs");

suite("hangar proxy", () => {
  for (const signal of ["SIGINT", "SIGTERM"] as const) {
    test(`a local port reaches a machine's private port until ${signal}`, async (t) => {
      const platform = await testPlatform(t);
      await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
      const config = { image: "web:1", env: { SIM_LISTEN: "7000" } };
      const { id } = (await platform.ask("POST /v1/apps/web/machines", { body: { config } })).body as { id: string };
      await platform.ask(`GET /v1/apps/web/machines/${id}/wait`);
      const env = { ...process.env, HOME: tempDir(), HANGAR_DATA_DIR: platform.data_dir };
      const child = spawn(process.execPath, [PROGRAM, "proxy", "0:7000", "web", "--json"], {
        env,
        stdio: ["ignore", "pipe", "inherit"],
      });
      t.after(() => child.kill("SIGKILL"));
      const ended = once(child, "exit");
      const [line] = (await once(createInterface(child.stdout), "line")) as [string];
      const said = JSON.parse(line) as { local: { host: string; port: number }; port: number; machine_id: string };
      assert.deepEqual([said.local.host, said.port, said.machine_id], ["127.0.0.1", 7000, id]);
      const socket = connect(said.local).setEncoding("utf8");
      socket.write("ping");
      assert.deepEqual(await once(socket, "data"), ["ping"]);
      const closed = once(socket, "close");
      child.kill(signal);
      assert.deepEqual(await ended, [0, null]);
      await closed;
    });
  }

  test("a privileged port is refused with the reason", async (t) => {
    const platform = await testPlatform(t);
    await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
    const run = (line: string) =>
      shell(`"${process.execPath}" "${PROGRAM}" ${line}`, { HOME: tempDir(), HANGAR_DATA_DIR: platform.data_dir });
    const none = await run("proxy 5432 web");
    assert.deepEqual([none.status === 0, /no machine of web is started: it has none/.test(none.stderr)], [false, true]);
    const wrong = await run("proxy 99999 web");
    assert.equal(wrong.status, 2);
    assert.match(wrong.stderr, /99999 is not PORT or LOCAL:REMOTE/);
  });
});
