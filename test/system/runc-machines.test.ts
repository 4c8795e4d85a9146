/** Real machines: their network, their processes, their limits, and what they leave behind. */
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { openRuncDriver } from "#drivers/runtime/runc/driver.ts";
import { aLaunchIn } from "#machines/fixtures.ts";
import { gatewayAddress } from "#machines/names.ts";
import type { ExitNotice, Launch, Ref, RuntimeDriver } from "#machines/runtime/driver.ts";
import { busyboxLayer, fixtureImages, MEMORY_KEY, realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { census, leftBehind } from "./leaks.ts";

const never = new AbortController().signal;
const HOW = { signal: "SIGTERM", timeout_ms: 10_000 };

suite("real machines", { skip: realMachinesMissing() }, () => {
  const dir = mkdtempSync(join(tmpdir(), "hangar-machines-"));
  const installation = { data_dir: join(dir, "data"), node_id: randomBytes(8).toString("hex") };
  let driver: RuntimeDriver;

  before(async () => {
    mkdirSync(installation.data_dir);
    const layer = busyboxLayer(join(dir, "busybox"));
    const images = fixtureImages({
      busybox: { layers: [layer] },
      user: { layers: [layer], config: { user: "app", env: { FROM: "image" }, working_dir: "/home/app", cmd: ["id"] } },
    });
    driver = await openRuncDriver({
      ...installation,
      memory_key: MEMORY_KEY,
      clock: systemClock,
      log: silentLog,
      images,
    });
  });

  after(async () => {
    await driver.close();
    await takeDown({ ...installation, clock: systemClock, log: silentLog });
    rmSync(dir, { recursive: true, force: true });
  });

  const launch = (config: Partial<Launch["config"]>, org_id = "o1"): Launch => {
    const secrets = { KEY: "c2VjcmV0" };
    return aLaunchIn(installation.node_id, { image: "busybox", ...config }, { org_id, secrets });
  };
  const start = async (wanted: Launch): Promise<Ref> => {
    const { handle } = await driver.start(wanted, never);
    return { id: wanted.id, boot: wanted.boot, handle };
  };
  const run = async (ref: Ref, ...command: string[]) => await driver.exec(ref, { command, timeout_ms: 20_000 }, never);
  const ended = (id: string): Promise<ExitNotice> =>
    new Promise((resolve) => {
      const end = driver.onExit((notice) => {
        if (notice.id !== id) return;
        end();
        resolve(notice);
      });
    });
  const output = async (id: string): Promise<string[]> =>
    (await driver.logs(id, { tail: 100 })).lines.map(({ message }) => message);

  test("machines of a network reach each other, and neither another network nor the host (C4)", async (t) => {
    const serve = { init: { exec: ["httpd", "-f", "-p", "80", "-h", "/etc"] } };
    const wanted = [launch(serve), launch(serve), launch(serve, "o2")] as const;
    const [first, second, other] = await Promise.all(wanted.map(start));
    assert.ok(first && second && other);
    const [here] = wanted;
    const fetch = async (from: Ref, host: string, port = 80): Promise<string> =>
      (await run(from, "sh", "-c", `printf 'GET /hostname HTTP/1.0\\r\\n\\r\\n' | nc -w 3 ${host} ${port}`)).stdout;
    const check = { type: "http" as const, port: 80, path: "/hostname" };
    await until("its check passes", async () => (await driver.probe(first, check, AbortSignal.timeout(5000))).passing);
    assert.match(await fetch(second, here.private_ip), new RegExp(`200 OK[^]*${first.id}\\n$`));
    assert.equal(await fetch(other, here.private_ip), "", "another organization's machine");

    const host = createServer((socket) => socket.end("hello")).listen(0, "::");
    await once(host, "listening");
    t.after(() => host.close());
    const { port } = host.address() as { port: number };
    assert.equal(await fetch(second, gatewayAddress(here.private_ip), port), "", "the host's own ports");

    assert.match((await driver.probe(first, { ...check, path: "/none" }, never)).output, /^404/);
    assert.equal((await driver.probe(first, { type: "tcp", port: 81 }, never)).passing, false);
    assert.equal((await driver.probe(first, { type: "tcp", port: 80 }, never)).passing, true);
    for (const { id } of wanted) await driver.destroy(id, never);
  });

  test("the image's user, folder and environment and the config's files and secrets are applied", async () => {
    const script = 'id -u; id -G; pwd; echo "$FROM $KEY $SVC_APP_NAME $HOME"; cat /opt/a/b /opt/secret';
    const wanted = launch({
      image: "user",
      files: [
        { guest_path: "/opt/a/b", raw_value: Buffer.from("raw\n").toString("base64") },
        { guest_path: "/opt/secret", secret_name: "KEY", mode: 0o444 },
      ],
      init: { exec: ["sh", "-c", script] },
    });
    const over = ended(wanted.id);
    await start(wanted);
    assert.equal((await over).exit_code, 0);
    const lines = ["1000", "1000 2000", "/home/app", "image c2VjcmV0 web /home/app", "raw", "secret"];
    assert.deepEqual(await output(wanted.id), lines);
    await driver.destroy(wanted.id, never);
    assert.deepEqual(await output(wanted.id), lines, "logs are kept for a while");
  });

  test("the first of several processes that ends ends the machine, with its exit code", async () => {
    const processes = [
      { exec: ["sh", "-c", "trap 'echo told; exit 0' TERM; touch /tmp/ready; while :; do sleep 0.1; done"] },
      { exec: ["sh", "-c", "while [ ! -e /tmp/ready ]; do sleep 0.1; done; exit 3"], user: "app" },
    ];
    const wanted = launch({ processes });
    const over = ended(wanted.id);
    await start(wanted);
    assert.equal((await over).exit_code, 3);
    assert.deepEqual(await output(wanted.id), ["told"]);
    await driver.destroy(wanted.id, never);
  });

  test("a machine with a tty has one, and its output is in the log", async () => {
    const script = "test -t 0 && test -t 1 && test -t 2 && echo terminal; printf 'no end'; exit 6";
    const wanted = launch({ init: { exec: ["sh", "-c", script], tty: true } });
    const over = ended(wanted.id);
    await start(wanted);
    assert.equal((await over).exit_code, 6);
    assert.deepEqual(await output(wanted.id), ["terminal", "no end"]);
    await driver.destroy(wanted.id, never);
  });

  test("a machine out of memory is killed, and its exit notice says so", async () => {
    const wanted = launch({ guest: { memory_mb: 256 }, init: { exec: ["sh", "-c", "tail /dev/zero"] } });
    const over = ended(wanted.id);
    await start(wanted);
    const { exit_code, signal, oom_killed, oom } = await over;
    assert.deepEqual({ exit_code, signal, oom_killed }, { exit_code: 137, signal: 9, oom_killed: true });
    assert.deepEqual(oom, { process: "tail", memory: "machine" });
    await driver.destroy(wanted.id, never);
  });

  test("a program that ends because its worker ran out of memory is reported so, with any exit code", async () => {
    const wanted = launch({ guest: { memory_mb: 256 }, init: { exec: ["sh", "-c", "tail /dev/zero || exit 4"] } });
    const over = ended(wanted.id);
    await start(wanted);
    const { exit_code, oom_killed, oom } = await over;
    assert.deepEqual(
      { exit_code, oom_killed, oom },
      { exit_code: 4, oom_killed: true, oom: { process: "tail", memory: "machine" } },
    );
    await driver.destroy(wanted.id, never);
  });

  test("a program that survives a worker killed out of memory and ends well is not reported so", async () => {
    const script = "tail /dev/zero; echo went on; trap 'exit 0' TERM; while :; do sleep 1 & wait; done";
    const wanted = launch({ guest: { memory_mb: 256 }, init: { exec: ["sh", "-c", script] } });
    const ref = await start(wanted);
    await until("its worker was killed", async () => (await output(wanted.id)).includes("went on"));
    const exit = await driver.stop(ref, HOW, never);
    assert.deepEqual([exit?.exit_code, exit?.oom_killed, exit?.oom], [0, false, undefined]);
    await driver.destroy(wanted.id, never);
  });

  test("a start after a stop has a clean root file system, unless it is persistent", async () => {
    const wanted = launch({ init: { exec: ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 0.1; done"] } });
    const first = await start(wanted);
    await run(first, "touch", "/mark");
    assert.equal((await driver.stop(first, HOW, never))?.exit_code, 0);
    const kept = await start({ ...wanted, boot: "b2", keep_rootfs: true });
    assert.equal((await run(kept, "ls", "/mark")).exit_code, 0);
    await driver.stop(kept, HOW, never);
    const clean = await start({ ...wanted, boot: "b3" });
    assert.notEqual((await run(clean, "ls", "/mark")).exit_code, 0);
    await driver.destroy(wanted.id, never);
  });

  test("exec passes input and output, has a timeout, and reports a missing program", async () => {
    const ref = await start(launch({ init: { exec: ["sleep", "1000"] } }));
    const echoed = await driver.exec(ref, { command: ["cat"], stdin: "words", timeout_ms: 10_000 }, never);
    assert.deepEqual([echoed.exit_code, echoed.stdout], [0, "words"]);
    const slow = await driver.exec(ref, { command: ["sleep", "100"], timeout_ms: 200 }, never);
    assert.equal(slow.exit_code, 124);
    assert.equal((await driver.ps(ref)).filter(({ command }) => command === "sleep 100").length, 0);
    assert.notEqual((await run(ref, "no-such-program")).exit_code, 0);
    await driver.destroy(ref.id, never);
    await assert.rejects(run(ref, "true"));
  });

  test("nothing is left when everything is destroyed", async () => {
    assert.deepEqual(await leftBehind(installation, "driver is open"), {});
    const { rules = [] } = census(installation);
    assert.ok(rules.length <= 2, "only the tables themselves");
  });
});
