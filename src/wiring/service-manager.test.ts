import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { suite, type TestContext, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { systemClock } from "#core/clock.ts";
import { callsMissing } from "#drivers/linux/calls.ts";
import { tempDir } from "../../test/support.ts";
import { openServiceManager } from "./service-manager.ts";

/** Stands in for systemd's end of the socket: prints each message as a line of JSON. */
const RECEIVER = `
import json, socket, sys
name = sys.argv[1]
end = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
end.bind("\\0" + name[1:] if name.startswith("@") else name)
print('""', flush=True)
while True: print(json.dumps(end.recv(4096).decode()), flush=True)
`;

async function receive(t: TestContext, address: string): Promise<() => Promise<string>> {
  const child = spawn("python3", ["-c", RECEIVER, address], { stdio: ["ignore", "pipe", "inherit"] });
  t.after(async () => {
    child.kill("SIGKILL");
    await once(child, "exit");
  });
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]();
  const next = async (): Promise<string> => JSON.parse(String((await lines.next()).value)) as string;
  await next();
  return next;
}

const complain = (text: string): never => assert.fail(text);
const environment = (address: string): NodeJS.ProcessEnv => ({
  NOTIFY_SOCKET: address,
  WATCHDOG_USEC: "3000",
  WATCHDOG_PID: "1",
});

suite("systemd notifications", { skip: callsMissing() ?? false }, () => {
  for (const [kind, address] of Object.entries({
    "a socket in the file system": join(tempDir(), "notify"),
    "an abstract socket": `@hangar-test-${process.pid}`,
  })) {
    test(`ready, watchdog and stopping are sent through ${kind}; child processes do not inherit the socket`, async (t) => {
      const next = await receive(t, address);
      const env = environment(address);
      const manager = openServiceManager({ env, clock: systemClock, complain });
      assert.deepEqual(env, {});
      manager.ready("Hangar 1", async () => {
        // A store that refuses is responsive.
        throw new Error("storage_full");
      });
      assert.equal(await next(), "READY=1\nSTATUS=Hangar 1");
      for (let beat = 0; beat < 3; beat++) assert.equal(await next(), "WATCHDOG=1");
      manager.stopping();
      let last = await next();
      while (last === "WATCHDOG=1") last = await next();
      assert.match(last, /^STOPPING=1\n/);
    });
  }

  test("waiting for the database counts as ready and alive, with the reason in STATUS", async (t) => {
    const address = join(tempDir(), "notify");
    const next = await receive(t, address);
    const manager = openServiceManager({ env: environment(address), clock: systemClock, complain });
    manager.waiting("the database is away");
    assert.equal(await next(), "READY=1\nSTATUS=Not ready: the database is away");
    for (let beat = 0; beat < 3; beat++) assert.equal(await next(), "WATCHDOG=1");
    manager.ready("Hangar 1", async () => {});
    let said = await next();
    while (said === "WATCHDOG=1") said = await next();
    assert.equal(said, "READY=1\nSTATUS=Hangar 1");
    manager.stopping();
  });

  test("a store that hangs stops the watchdog notifications", async (t) => {
    const address = join(tempDir(), "notify");
    const next = await receive(t, address);
    const manager = openServiceManager({ env: environment(address), clock: systemClock, complain });
    const probed = Promise.withResolvers<void>();
    manager.ready("Hangar 1", () => {
      probed.resolve();
      return new Promise(() => {});
    });
    await probed.promise;
    await setImmediate();
    manager.stopping();
    assert.match(await next(), /^READY=1/);
    assert.match(await next(), /^STOPPING=1/);
  });

  test("without systemd nothing is sent, and a missing socket is only logged", () => {
    openServiceManager({ env: {}, clock: systemClock, complain }).ready("Hangar 1", () => assert.fail("probed"));
    const said: string[] = [];
    const env = { NOTIFY_SOCKET: "/nowhere/notify" };
    const manager = openServiceManager({ env, clock: systemClock, complain: (text) => void said.push(text) });
    manager.ready("Hangar 1", () => assert.fail("probed"));
    manager.stopping();
    assert.deepEqual(said, [
      "systemd could not be notified of READY=1: connect /nowhere/notify: ENOENT",
      "systemd could not be notified of STOPPING=1: connect /nowhere/notify: ENOENT",
    ]);
  });
});
