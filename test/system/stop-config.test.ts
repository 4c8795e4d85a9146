/**
 * How running machines are stopped: by update, restart, destroy with `force` and with `kill`; observed by Debian's
 * python3.
 */
import assert from "node:assert/strict";
import { after, before, suite, test } from "node:test";
import { packagesMissing } from "../debian-root.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { volumesMissing } from "../volumes.ts";
import { type DebianPlatform, debianPlatform } from "./debian-platform.ts";

/** Exits with the number of the signal that came; ignores those named in IGNORE. */
const PROGRAM = `
import os, signal, sys
def stop(number, frame):
    print("got", signal.Signals(number).name, flush=True)
    if signal.Signals(number).name not in os.environ.get("IGNORE", ""):
        sys.exit(number)
for one in (signal.SIGTERM, signal.SIGINT, signal.SIGUSR1):
    signal.signal(one, stop)
print("ready", flush=True)
while True:
    signal.pause()
`;
const [SIGINT, SIGUSR1, SIGTERM, SIGKILL] = [2, 10, 15, 9];

const configOf = (stop_config: object | undefined, more: object = {}): object => ({
  image: "debian",
  init: { exec: ["/usr/bin/python3", "-c", PROGRAM] },
  restart: { policy: "no" },
  ...(stop_config ? { stop_config } : {}),
  ...more,
});

suite("stopping real machines", { skip: realMachinesMissing() ?? packagesMissing(["python3"]) }, () => {
  let debian: DebianPlatform;
  before(async () => {
    debian = await debianPlatform(["python3"]);
  });
  after(() => debian.close());

  const { machine, exits, ready, ask } = {
    machine: (config: object) => debian.machine(config),
    exits: (id: string) => debian.exits(id),
    ready: (id: string, times?: number) => debian.logged(id, "ready", times),
    ask: (target: string, body?: object) => debian.ask(target, body),
  };

  test("an update stops the old version with the old version's stop_config", async () => {
    const id = await machine(configOf({ signal: "SIGTERM", timeout: "20s" }));
    await ready(id);
    const changed = await ask(`POST /machines/${id}`, { config: configOf({ signal: "SIGUSR1" }) });
    await ask(`GET /machines/${id}/wait?state=started&instance_id=${changed.instance_id}`);
    assert.deepEqual(
      (await exits(id)).map(({ exit_code }) => exit_code),
      [SIGTERM],
    );
    await ready(id, 2);
    await ask(`POST /machines/${id}/restart`);
    await ready(id, 3);
    const config = configOf(undefined);
    const last = await ask(`POST /machines/${id}`, { config });
    await ask(`GET /machines/${id}/wait?state=started&instance_id=${last.instance_id}`);
    await ready(id, 4);
    await ask(`POST /machines/${id}/stop`, {});
    await ask(`GET /machines/${id}/wait?state=stopped&instance_id=${last.instance_id}`);
    const codes = (await exits(id)).map(({ exit_code }) => exit_code);
    assert.deepEqual(codes, [SIGINT, SIGUSR1, SIGUSR1, SIGTERM], "newest first");
  });

  test("an update uses the old version's stop timeout as well", async () => {
    const id = await machine(configOf({ signal: "SIGTERM", timeout: "1s" }, { env: { IGNORE: "SIGTERM" } }));
    await ready(id);
    const { instance_id } = await ask(`POST /machines/${id}`, { config: configOf({ timeout: "300s" }) });
    // Long before the five minutes of the new version.
    await ask(`GET /machines/${id}/wait?state=started&instance_id=${instance_id}`);
    assert.deepEqual(
      (await exits(id)).map(({ signal }) => signal),
      [SIGKILL],
    );
  });

  test("destroy with force stops the machine by its stop_config, and its event shows the exit", async () => {
    const id = await machine(configOf({ signal: "SIGUSR1", timeout: "60s" }));
    await ready(id);
    assert.deepEqual(await ask(`DELETE /machines/${id}?force=true`), { ok: true });
    await ask(`GET /machines/${id}/wait?state=destroyed`);
    const [exit] = await exits(id);
    assert.deepEqual([exit?.exit_code, exit?.requested_stop], [SIGUSR1, true]);
  });

  test("destroy with kill ends the machine at once, also while a forced stop is waiting", async () => {
    const stubborn = configOf({ signal: "SIGTERM", timeout: "300s" }, { env: { IGNORE: "SIGTERM" } });
    const [one, two] = [await machine(stubborn), await machine(stubborn)];
    await ready(one);
    await ask(`DELETE /machines/${one}?kill=true`);
    await ask(`GET /machines/${one}/wait?state=destroyed`);
    await ready(two);
    await ask(`DELETE /machines/${two}?force=true`);
    await debian.logged(two, "got SIGTERM");
    assert.equal((await ask(`GET /machines/${two}`)).state, "destroying");
    await ask(`DELETE /machines/${two}?kill=true`);
    await ask(`GET /machines/${two}/wait?state=destroyed`);
    for (const id of [one, two])
      assert.deepEqual(
        (await exits(id)).map(({ signal }) => signal),
        [SIGKILL],
      );
  });

  for (const how of ["kill", "force"]) {
    test(`a volume can be deleted right after its machine is destroyed with ${how}`, {
      skip: volumesMissing(),
    }, async () => {
      const volume = (await ask("POST /volumes", { name: "data", size_gb: 1 })).id;
      const id = await machine(configOf({ signal: "SIGTERM" }, { mounts: [{ volume, path: "/data" }] }));
      await ready(id);
      await ask(`DELETE /machines/${id}?${how}=true`);
      const deleted = await ask(`DELETE /volumes/${volume}`);
      assert.equal(deleted.state, "destroyed");
      await ask(`GET /machines/${id}/wait?state=destroyed`);
      await until(
        "the volume is detached",
        async () => (await ask(`GET /volumes/${volume}`)).attached_machine_id === null,
      );
    });
  }
});
