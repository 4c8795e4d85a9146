/** Suspend and resume of real servers: their memory, their connections and their files go on. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { connect, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { LoopDisk } from "#drivers/disk/loop.ts";
import { SEALED_FILE } from "#drivers/freeze/sealed-memory.ts";
import { cgroupDirs, isUnified, processesIn, swapProblem } from "#drivers/runtime/runc/cgroup.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { openRuncDriver } from "#drivers/runtime/runc/driver.ts";
import { layoutOf } from "#drivers/runtime/runc/layout.ts";
import { startOf } from "#drivers/runtime/runc/process-table.ts";
import { memoryOf } from "#drivers/runtime/runc/stats/cgroup-stats.ts";
import { freezeFile, isFrozen, thawCgroup } from "#drivers/runtime/runc/suspend/cgroup-freeze.ts";
import { aLaunchIn, lostOf, resumedOf } from "#machines/fixtures.ts";
import type { Launch, Ref, RuntimeDriver, SuspendKind } from "#machines/runtime/driver.ts";
import type { DiskVolume } from "#volumes/disk.ts";
import { busyboxLayer, criuMissing, fixtureImages, MEMORY_KEY, programLayer, realMachinesMissing } from "../rootfs.ts";
import { PATIENCE_MS, runs, until } from "../support.ts";
import { PYTHON, pythonLayer } from "./python-layer.ts";
import { Warnings } from "./warnings.ts";

const never = new AbortController().signal;
const MIB = 1024 * 1024;
/** Bytes of a program's own memory, which no page cache has. */
const HELD = 96 * MIB;
const mib = (bytes: number): number => Math.round(bytes / MIB);
const CYCLES = runs(2, 20);
/** In no image and no command line, only in memory. */
const SECRET = "what only the running program knows";

/** Both count what they are asked, in memory, and write each number into the volume. Node's also counts what it sees happen to files. */
const NODE_SERVER = `
let n = 0; const fs = require("fs"); const fd = fs.openSync("/data/node", "a");
let seen = 0; fs.watch("/etc", () => { seen++; });
require("net").createServer((s) => s.on("error", () => {}).on("data", () => s.write(seen + "\\n"))).listen(8081, "::");
require("net").createServer((s) => s.on("error", () => {}).on("data", () => { fs.writeSync(fd, ++n + "\\n"); s.write(n + "\\n"); })).listen(8080, "::");`;
const PYTHON_SERVER = `
import socketserver, socket
n = 0
out = open("/data/python", "a")
class H(socketserver.StreamRequestHandler):
    def handle(self):
        global n
        while self.rfile.readline():
            n += 1
            out.write(str(n) + "\\n"); out.flush()
            self.wfile.write((str(n) + "\\n").encode())
class S(socketserver.ThreadingTCPServer):
    address_family = socket.AF_INET6
    allow_reuse_address = True
S(("::", 80), H).serve_forever()`;

class Talk {
  readonly #socket: Socket;
  constructor(host: string, port: number) {
    this.#socket = connect({ host, port, family: 6 }).on("error", () => {});
  }
  async ask(): Promise<number> {
    this.#socket.write("?\n");
    const [data] = (await once(this.#socket, "data", { signal: AbortSignal.timeout(PATIENCE_MS) })) as [Buffer];
    return Number(data.toString());
  }
  end(): void {
    this.#socket.destroy();
  }
}

const SKIP = { snapshot: realMachinesMissing() ?? criuMissing(), freeze: realMachinesMissing() };

for (const kind of ["snapshot", "freeze"] as const)
  suite(`suspend by ${kind}`, { skip: SKIP[kind] }, () => suspends(kind));

function suspends(kind: SuspendKind): void {
  const dir = mkdtempSync(join(tmpdir(), "hangar-suspend-"));
  const installation = { data_dir: join(dir, "data"), node_id: randomBytes(8).toString("hex") };
  const disk = new LoopDisk({ dir: join(dir, "volumes"), pool: "plain" });
  const volume: DiskVolume = { id: "vol_data", size_gb: 1, fstype: "ext4", encryption: null, key: null };
  const warnings = new Warnings();
  let driver: RuntimeDriver;

  before(async () => {
    mkdirSync(installation.data_dir);
    const node = programLayer(join(dir, "node"), process.execPath, "node");
    const layers = [busyboxLayer(join(dir, "busybox")), node];
    if (existsSync(PYTHON)) layers.push(pythonLayer(join(dir, "python")));
    const images = fixtureImages({ servers: { layers } });
    await disk.create(volume);
    const suspend = kind === "freeze" ? "freeze" : "auto";
    const volumes = { mount: () => disk.mount(volume), unmount: () => disk.unmount(volume) };
    const parts = { clock: systemClock, log: warnings.log, images, volumes, suspend, memory_key: MEMORY_KEY } as const;
    driver = await openRuncDriver({ ...installation, ...parts });
  });

  after(async () => {
    await driver.close();
    await takeDown({ ...installation, clock: systemClock, log: warnings.log });
    await disk.remove(volume.id);
    await disk.close();
    rmSync(dir, { recursive: true, force: true });
  });

  const wanted = (): Launch => {
    const python = existsSync(PYTHON) ? [{ exec: ["python3", "-c", PYTHON_SERVER] }] : [];
    const config: Launch["config"] = {
      image: "servers",
      guest: { memory_mb: 512 },
      mounts: [{ volume: "vol", path: "/data" }],
      processes: [
        // Around a sleep: that of busybox 1.37 ends when CRIU interrupts it, and the machine with it.
        { exec: ["sh", "-c", "chmod 777 /data; while :; do sleep 1000; done"] },
        ...python,
        { exec: ["node", "-e", NODE_SERVER], user: "app" },
      ],
    };
    return aLaunchIn(installation.node_id, config);
  };
  const start = async (launch: Launch): Promise<Ref> => {
    const { handle } = await driver.start(launch, never);
    const ref = { id: launch.id, boot: launch.boot, handle };
    for (const port of existsSync(PYTHON) ? [80, 8080] : [8080]) {
      const probe = () => driver.probe(ref, { type: "tcp", port }, AbortSignal.timeout(10_000));
      await until(`it listens on ${port}`, async () => (await probe()).passing, { every_ms: 50 });
    }
    return ref;
  };

  /** What was watched before is watched still. */
  const watchesOn = async (ref: Ref, private_ip: string): Promise<void> => {
    const talk = new Talk(private_ip, 8081);
    const before = await talk.ask();
    await driver.exec(ref, { command: ["touch", "/etc/noticed"], timeout_ms: 30_000 }, never);
    const isNoticed = async (): Promise<boolean> => (await talk.ask()) !== before;
    await until("a change to a file is noticed after the resume", isNoticed, { every_ms: 50 });
    talk.end();
  };

  test("Node and Python servers keep memory, connections, files and watches through a resume", async (t) => {
    const launch = wanted();
    let ref = await start(launch);
    const talks = (existsSync(PYTHON) ? [8080, 80] : [8080]).map((port) => ({
      port,
      talk: new Talk(launch.private_ip, port),
    }));
    t.after(() => {
      for (const { talk } of talks) talk.end();
    });
    for (const { talk } of talks) assert.equal(await talk.ask(), 1);
    for (let cycle = 1; cycle <= CYCLES; cycle++) {
      const { handle, kind: done } = await driver.suspend(ref, never);
      assert.equal(done, kind, warnings.text());
      assert.deepEqual(
        (await driver.recover([{ ...ref, handle }])).map(({ state }) => state),
        ["frozen"],
      );
      const resumed = resumedOf(await driver.resume(launch, handle, never));
      ref = { ...ref, handle: resumed.handle };
      for (const { talk, port } of talks) {
        assert.equal(await talk.ask(), 2 * cycle, `the old connection to ${port}`);
        const fresh = new Talk(launch.private_ip, port);
        assert.equal(await fresh.ask(), 2 * cycle + 1, `a new connection to ${port}`);
        fresh.end();
      }
    }
    await watchesOn(ref, launch.private_ip);
    const { stdout } = await driver.exec(ref, { command: ["cat", "/data/node"], timeout_ms: 30_000 }, never);
    const numbers = Array.from({ length: 2 * CYCLES + 1 }, (_, index) => `${index + 1}\n`);
    assert.equal(stdout, numbers.join(""));
    await driver.destroy(launch.id, never);
  });

  test("a machine with a tty continues after a resume, and so does its log", async () => {
    const count = "i=0; while :; do echo $i; i=$((i+1)); sleep 0.1; done";
    const { mounts: _, processes: __, ...rest } = wanted().config;
    const launch = { ...wanted(), config: { ...rest, init: { exec: ["sh", "-c", count], tty: true } } };
    const { handle } = await driver.start(launch, never);
    const counted = async (): Promise<number[]> =>
      (await driver.logs(launch.id, { tail: 10_000 })).lines.map(({ message }) => Number(message));
    const reach = async (lines: number): Promise<void> => {
      const isThere = async (): Promise<boolean> => (await counted()).length >= lines;
      await until(`it counts to ${lines}`, isThere, { every_ms: 50 }).catch((cause: unknown) => {
        throw new Error(warnings.text(), { cause });
      });
    };
    await reach(3);
    const frozen = await driver.suspend({ id: launch.id, boot: launch.boot, handle }, never);
    const before = (await counted()).length;
    resumedOf(await driver.resume(launch, frozen.handle, never));
    await reach(before + 3);
    const numbers = await counted();
    assert.deepEqual(
      numbers,
      numbers.map((_, index) => index),
    );
    await driver.destroy(launch.id, never);
  });

  if (kind === "snapshot")
    test("a modified snapshot is not used; the machine boots cold with its disk unchanged (C7)", async () => {
      const launch = wanted();
      const ref = await start(launch);
      await driver.exec(ref, { command: ["touch", "/mark"], timeout_ms: 30_000 }, never);
      const { handle } = await driver.suspend(ref, never);
      const folder = join(installation.data_dir, "machines", launch.id, "snapshot");
      const file = join(folder, SEALED_FILE);
      const bytes = readFileSync(file);
      bytes.writeUInt8(bytes.readUInt8(100) ^ 1, 100);
      writeFileSync(file, bytes);
      assert.match(lostOf(await driver.resume(launch, handle, never)), /the sealed memory was changed/);
      const cold = await start({ ...launch, boot: "b2", keep_rootfs: true });
      const kept = await driver.exec(cold, { command: ["ls", "/mark"], timeout_ms: 30_000 }, never);
      assert.equal(kept.exit_code, 0);
      await driver.destroy(launch.id, never);
    });

  if (kind === "freeze")
    test("a frozen machine gives its page cache back, and its resume thaws it", async () => {
      const launch = wanted();
      const ref = await start(launch);
      const fill = "dd if=/dev/zero of=/file bs=1M count=64; cat /file > /dev/null";
      await driver.exec(ref, { command: ["sh", "-c", fill], timeout_ms: 60_000 }, never);
      const cgroup = `${layoutOf(installation.data_dir, installation.node_id).cgroup}/${launch.id}`;
      const cached = (): number => memoryOf(cgroupDirs(cgroup), 0).cached;
      assert.ok(cached() > 50 * MIB, `${cached()} bytes of page cache before`);
      const { handle } = await driver.suspend(ref, never);
      assert.ok(cached() < 25 * MIB, `${cached()} bytes of page cache after`);
      assert.ok(isFrozen(freezeFile(cgroup)));
      resumedOf(await driver.resume(launch, handle, never));
      assert.ok(!isFrozen(freezeFile(cgroup)));
      await driver.destroy(launch.id, never);
    });

  if (kind === "freeze")
    test("a frozen machine's memory is swapped out and read back unchanged, and its swap limit is restored", {
      skip: isUnified() ? swapProblem() : "with cgroup v1 memory stays in memory: its own share of swap bounds it",
    }, async (t) => {
      const { mounts: _, processes: __, ...rest } = wanted().config;
      const hold = `const held = require("crypto").randomBytes(${HELD}); const sum = () => require("crypto").createHash("sha256").update(held).digest("hex"); console.log(sum()); process.on("SIGUSR2", () => console.log(sum()))`;
      const config = { ...rest, init: { exec: ["node", "-e", `${hold}; setInterval(() => {}, 1e6)`] } };
      const launch = { ...wanted(), config };
      const ref = { id: launch.id, boot: launch.boot, handle: (await driver.start(launch, never)).handle };
      const sums = async (): Promise<string[]> =>
        (await driver.logs(launch.id, { tail: 100 })).lines.map(({ message }) => message.trim());
      await until("it holds its memory", async () => (await sums()).length === 1, { every_ms: 50 });
      const cgroup = `${layoutOf(installation.data_dir, installation.node_id).cgroup}/${launch.id}`;
      const bytes = (file: string): number =>
        Number(readFileSync(join(cgroupDirs(cgroup)["unified"] ?? "", file), "utf8"));
      const before = bytes("memory.current");
      const { handle } = await driver.suspend(ref, never);
      const [after, swapped] = [bytes("memory.current"), bytes("memory.swap.current")];
      t.diagnostic(`${mib(before)} MiB before, ${mib(after)} MiB after, ${mib(swapped)} MiB in swap`);
      assert.ok(
        after < before - HELD / 2 && swapped > HELD / 2,
        `${before} before, ${after} after, ${swapped} in swap`,
      );
      resumedOf(await driver.resume(launch, handle, never));
      assert.equal(bytes("memory.swap.max"), 0);
      await driver.signal(ref, "SIGUSR2");
      await until("it reads its memory", async () => (await sums()).length === 2, { every_ms: 50 });
      const [first, second] = await sums();
      assert.equal(second, first);
      await driver.destroy(launch.id, never);
    });

  if (kind === "freeze")
    test("a frozen machine whose processes were killed boots cold, and says why", async () => {
      const launch = wanted();
      const ref = await start(launch);
      const { handle } = await driver.suspend(ref, never);
      const { cgroup } = layoutOf(installation.data_dir, installation.node_id);
      const pids = processesIn(`${cgroup}/${launch.id}`);
      for (const pid of pids) process.kill(pid, "SIGKILL");
      thawCgroup(`${cgroup}/${launch.id}`);
      // A process leaves its cgroup a moment before it has ended.
      await until("nothing of it runs", () => pids.every((pid) => startOf(pid) === undefined));
      assert.match(lostOf(await driver.resume(launch, handle, never)), /ended while it was suspended/);
      await driver.start({ ...launch, boot: "b2", keep_rootfs: true }, never);
      await driver.destroy(launch.id, never);
    });

  const run = `/run/hangar/${installation.node_id}`;
  /** As a full box has it: the next memory images must go to the disk. */
  const fillMemory = (): void => {
    const { status, stderr } = spawnSync("mount", ["-o", "remount,size=4m", run], { encoding: "utf8" });
    assert.equal(status, 0, stderr);
  };
  for (const [where, prepare, more] of kind === "freeze"
    ? []
    : ([
        ["memory", () => {}, 0],
        ["the disk", fillMemory, 0],
        ["a file system of their own, for more than fits in memory", fillMemory, HELD],
      ] as const))
    test(`the memory of a suspended machine is on disk only encrypted, with its images in ${where}`, async () => {
      prepare();
      const { mounts: _, processes: __, ...rest } = wanted().config;
      const hold = `globalThis.held = Buffer.from("${Buffer.from(SECRET).toString("hex")}", "hex").toString();
        const all = require("node:crypto").randomBytes(${more}); const sum = () => require("node:crypto").createHash("sha256").update(all).digest("hex");
        const first = sum(); setInterval(() => console.log(sum() === first ? held.length : process.exit(1)), 100)`;
      const launch = { ...wanted(), config: { ...rest, init: { exec: ["node", "-e", hold] } } };
      const { handle } = await driver.start(launch, never);
      const lines = async (): Promise<number> => (await driver.logs(launch.id, { tail: 10_000 })).lines.length;
      await until("it runs", async () => (await lines()) > 0, { every_ms: 50 });
      const { handle: frozen } = await driver.suspend({ id: launch.id, boot: launch.boot, handle }, never);
      const folder = join(installation.data_dir, "machines", launch.id);
      assert.deepEqual(readdirSync(join(folder, "snapshot")), [SEALED_FILE]);
      const found = spawnSync("grep", ["-rlaF", "--exclude=root.ext4", SECRET, folder], { encoding: "utf8" });
      assert.deepEqual([found.status, found.stdout], [1, ""], found.stderr);
      assert.deepEqual(readdirSync(join(run, "memory")), []);
      const before = await lines();
      resumedOf(await driver.resume(launch, frozen, never));
      await until("it goes on", async () => (await lines()) > before, { every_ms: 50 });
      assert.deepEqual(readdirSync(join(run, "memory")), []);
      assert.deepEqual(readdirSync(folder).includes("unsealed"), false);
      await driver.destroy(launch.id, never);
    });
}
