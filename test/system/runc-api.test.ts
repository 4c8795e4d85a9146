/** What the specification promises of real machines, seen through the API: how they stop, and what of their disk is kept. */
import assert from "node:assert/strict";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { type Caller, realPlatform } from "./runc-support.ts";

const MACHINES = "/v1/apps/web/machines";
const SECOND_NS = 1_000_000_000;

interface Event {
  type: string;
  status: string;
  request?: { exit_event?: { exit_code: number; signal: number; requested_stop: boolean } };
}
interface Machine {
  id: string;
  instance_id: string;
  state: string;
  events: Event[];
}

/** Handles the given signals, prints them, and then does as `then` says. */
const hearing = (signals: string, then: string): string[] => [
  "sh",
  "-c",
  `trap '${then}' ${signals}; echo ready; while :; do sleep 0.05; done`,
];

suite("real machines through the API", { skip: realMachinesMissing() }, () => {
  const cleanups: (() => Promise<void>)[] = [];
  let caller: Caller;

  before(async () => {
    const platform = realPlatform({ after: (done) => void cleanups.push(done as () => Promise<void>) });
    busyboxLayer(join(platform.images, "busybox"));
    caller = await platform.start();
    await caller.ask("POST", "/v1/apps", { app_name: "web" });
  });

  after(async () => {
    for (const done of cleanups) await done();
  });

  const ok = async (method: string, path: string, body?: unknown): Promise<Machine> => {
    const answer = await caller.ask(method, path, body);
    assert.equal(answer?.status, 200, `${method} ${path}: ${JSON.stringify(answer?.body)}`);
    return answer.body as unknown as Machine;
  };
  const settled = async (id: string, state: string): Promise<Machine> => {
    await ok("GET", `${MACHINES}/${id}/wait?state=settled&timeout=120`);
    const machine = await ok("GET", `${MACHINES}/${id}`);
    assert.equal(machine.state, state, JSON.stringify(machine.events.slice(0, 4)));
    return machine;
  };
  const said = async (id: string): Promise<string[]> => {
    const answer = await caller.ask("GET", `${MACHINES}/${id}/logs?tail=100`);
    const lines = (answer?.body["lines"] ?? []) as { message: string }[];
    return lines.map(({ message }) => message);
  };
  /** Waits until it has said so much, and answers what was last. */
  const hears = async (id: string, lines: number): Promise<string | undefined> => {
    return await until(`it says ${lines} lines`, async () => (await said(id))[lines - 1], { every_ms: 50 });
  };
  const started = async (config: object): Promise<string> => {
    const { id } = await ok("POST", MACHINES, {
      config: { image: "busybox", restart: { policy: "no" }, ...config },
    });
    await settled(id, "started");
    return id;
  };
  const destroy = async (id: string): Promise<void> => {
    await ok("DELETE", `${MACHINES}/${id}?force=true`);
  };
  const exitOf = ({ events }: Machine) => {
    const found = events.find(({ type }) => type === "exit")?.request?.exit_event;
    assert.ok(found, "the end is among the events");
    return [found.exit_code, found.signal, found.requested_stop];
  };

  test("a stop sends SIGINT, and the exit code is in the machine's events", async () => {
    const id = await started({ init: { exec: hearing("INT", "echo heard; exit 3") } });
    await hears(id, 1);
    await ok("POST", `${MACHINES}/${id}/stop`);
    assert.deepEqual(exitOf(await settled(id, "stopped")), [3, -1, true]);
    assert.deepEqual(await said(id), ["ready", "heard"]);
    await destroy(id);
  });

  test("a stop sends the signal of stop_config, unless the request names one", async () => {
    const init = {
      exec: ["sh", "-c", "trap 'exit 4' USR1; trap 'exit 5' TERM; echo ready; while :; do sleep 0.05; done"],
    };
    const id = await started({ init, stop_config: { signal: "SIGUSR1", timeout: 60 * SECOND_NS } });
    await hears(id, 1);
    await ok("POST", `${MACHINES}/${id}/stop`);
    assert.deepEqual(exitOf(await settled(id, "stopped")), [4, -1, true]);
    await ok("POST", `${MACHINES}/${id}/start`);
    await settled(id, "started");
    await hears(id, 2);
    await ok("POST", `${MACHINES}/${id}/stop`, { signal: "SIGTERM" });
    assert.deepEqual(exitOf(await settled(id, "stopped")), [5, -1, true]);
    await destroy(id);
  });

  test("a machine that ignores the signal is killed after its timeout", async () => {
    const id = await started({ init: { exec: hearing("INT", "echo asked") }, stop_config: { timeout: 4 * SECOND_NS } });
    await hears(id, 1);
    await ok("POST", `${MACHINES}/${id}/stop`);
    assert.deepEqual(exitOf(await settled(id, "stopped")), [137, 9, true]);
    assert.deepEqual(await said(id), ["ready", "asked"]);
    await destroy(id);
  });

  test("SIGKILL and a timeout of 0 stop at once", async () => {
    for (const body of [{ signal: "SIGKILL", timeout: "300s" }, { timeout: 0 }]) {
      const id = await started({ init: { exec: hearing("INT", ":") }, stop_config: { timeout: 300 * SECOND_NS } });
      await hears(id, 1);
      await ok("POST", `${MACHINES}/${id}/stop`, body);
      assert.deepEqual(exitOf(await settled(id, "stopped")), [137, 9, true]);
      await destroy(id);
    }
  });

  /** Says at each boot how many boots its disk has seen. */
  const COUNTING = [
    "sh",
    "-c",
    "trap 'exit 0' INT; echo x >> /boots; echo boot $(wc -l < /boots); while :; do sleep 0.05; done",
  ];

  for (const [persist_rootfs, seen] of Object.entries({
    never: { restart: 1, start: 1, update: 1, updated_stopped: 1 },
    restart: { restart: 2, start: 3, update: 1, updated_stopped: 1 },
    always: { restart: 2, start: 3, update: 4, updated_stopped: 5 },
  })) {
    test(`persist_rootfs ${persist_rootfs}: the disk after a restart, a stop and an update`, async () => {
      const config = { guest: { persist_rootfs }, init: { exec: COUNTING } };
      const id = await started(config);
      let booted = 1;
      const next = async (what: string, wanted: number): Promise<void> => {
        await settled(id, "started");
        assert.equal(await hears(id, ++booted), `boot ${wanted}`, `after ${what}`);
      };
      assert.equal(await hears(id, 1), "boot 1");
      await ok("POST", `${MACHINES}/${id}/restart`);
      await next("a restart", seen.restart);
      await ok("POST", `${MACHINES}/${id}/stop`);
      await settled(id, "stopped");
      await ok("POST", `${MACHINES}/${id}/start`);
      await next("a stop and start", seen.start);
      const update = { config: { image: "busybox", restart: { policy: "no" }, ...config, env: { NEW: "1" } } };
      await ok("POST", `${MACHINES}/${id}`, update);
      await next("an update", seen.update);
      await ok("POST", `${MACHINES}/${id}/stop`);
      await settled(id, "stopped");
      await ok("POST", `${MACHINES}/${id}`, {
        ...update,
        config: { ...update.config, env: { NEW: "2" } },
        skip_launch: true,
      });
      await settled(id, "stopped");
      await ok("POST", `${MACHINES}/${id}/start`);
      await next("an update while it was stopped", seen.updated_stopped);
      await destroy(id);
    });
  }
});
