/** The engines that Hangar stands next to, each as its makers would run it, limits and image the same. */
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { seccomp } from "#drivers/runtime/runc/seccomp.ts";
import { type Ask, asker } from "../load/ask.ts";
import { end, until } from "../processes.ts";
import {
  COMMAND,
  type Engine,
  type Ground,
  MEMORY_MB,
  type Peer,
  PIDS,
  run,
  runQuietly,
  startApart,
} from "./engine.ts";

/** A bundle as the runtime's own `spec` makes it, with the limits of all and our seccomp profile. */
function writeBundle(dir: string, { rootfs }: Ground, id: string): void {
  mkdirSync(dir, { recursive: true });
  const kinds = ["pid", "ipc", "uts", "mount", "network"];
  const nodev = ["nosuid", "noexec", "nodev"];
  const config = {
    ociVersion: "1.0.2",
    process: {
      terminal: false,
      user: { uid: 0, gid: 0 },
      args: COMMAND,
      env: ["PATH=/bin"],
      cwd: "/",
      noNewPrivileges: true,
      capabilities: { bounding: ["CAP_KILL"], effective: ["CAP_KILL"], permitted: ["CAP_KILL"] },
    },
    root: { path: rootfs, readonly: true },
    hostname: id,
    mounts: [
      { destination: "/proc", type: "proc", source: "proc" },
      { destination: "/dev", type: "tmpfs", source: "tmpfs", options: ["nosuid", "mode=755", "size=65536k"] },
      { destination: "/sys", type: "sysfs", source: "sysfs", options: [...nodev, "ro"] },
    ],
    linux: {
      cgroupsPath: `/hangar-bench/${id}`,
      namespaces: kinds.map((type) => ({ type })),
      resources: { memory: { limit: MEMORY_MB * 1024 * 1024 }, pids: { limit: PIDS } },
      seccomp: seccomp(),
    },
  };
  writeFileSync(join(dir, "config.json"), JSON.stringify(config));
}

const alive = (pid: number): boolean => {
  try {
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, "utf8"));
  } catch {
    return false;
  }
};

/** A bare OCI runtime: nothing watches the process, nothing keeps its output, its network is empty. */
function bare(name: string, ground: Ground, before: readonly string[], note: string): Engine {
  const command = [...before, name, "--root", join(ground.dir, "state")];
  const [program = name, ...args] = command;
  const bundle = (id: string): string => join(ground.dir, "bundles", id);
  return {
    name: `bare ${name}`,
    note,
    shims: [],
    mark: ground.dir,
    daemons: () => [],
    async start(id) {
      writeBundle(bundle(id), ground, id);
      await runQuietly(program, ...args, "run", "-d", "-b", bundle(id), "--pid-file", join(bundle(id), "pid"), id);
    },
    async stop(id) {
      const pid = Number(readFileSync(join(bundle(id), "pid"), "utf8"));
      process.kill(pid, "SIGTERM");
      while (alive(pid)) await pause(1);
    },
    remove: (id) => runQuietly(program, ...args, "delete", "-f", id),
    list: () => run(program, ...args, "list", "-f", "json"),
    close: async () => {},
  };
}

const runc: Peer = {
  name: "bare runc",
  needs: ["runc"],
  open: async (ground) => bare("runc", ground, [], "no shim, no log, empty network, shared read-only root"),
};

const crun: Peer = {
  name: "bare crun",
  needs: ["crun"],
  async open(ground) {
    // Debian's crun refuses a box that has both versions of cgroups; it sees only the first in this namespace.
    const holder = startApart("unshare", ["--mount", "sh", "-c", "umount /sys/fs/cgroup/unified; exec sleep 100000"]);
    await pause(500);
    const engine = bare(
      "crun",
      ground,
      ["nsenter", "--mount", "--target", String(holder.pid)],
      "as bare runc, through nsenter",
    );
    return {
      ...engine,
      async close() {
        await end(holder);
      },
    };
  },
};

/** Docker Engine and Podman answer the same API. */
function dockerLike(name: string, ask: Ask, image: string, more: object, close: () => Promise<void>): Engine {
  const host = { Memory: MEMORY_MB * 1024 * 1024, PidsLimit: PIDS, ...more };
  return {
    name,
    shims: [],
    mark: "",
    daemons: () => [],
    async start(id) {
      const body = { Image: image, Cmd: COMMAND.slice(1), Entrypoint: COMMAND.slice(0, 1), HostConfig: host };
      await ask("POST", `/containers/create?name=${id}`, body);
      await ask("POST", `/containers/${id}/start`);
    },
    async stop(id) {
      await ask("POST", `/containers/${id}/stop?t=5`);
    },
    async remove(id) {
      await ask("DELETE", `/containers/${id}?force=1`);
    },
    list: () => ask("GET", "/containers/json"),
    close,
  };
}

const docker: Peer = {
  name: "Docker Engine",
  needs: ["dockerd", "docker"],
  async open({ dir, tar }) {
    const socket = join(dir, "d.sock");
    const places = ["--data-root", join(dir, "root"), "--exec-root", join(dir, "exec"), "-p", join(dir, "pid")];
    const child = startApart("dockerd", ["-H", `unix://${socket}`, ...places, "--storage-driver", "overlay2"]);
    const ask = asker({ socketPath: socket });
    try {
      await until("dockerd", () => ask("GET", "/_ping"));
      await run("docker", "-H", `unix://${socket}`, "import", tar, "bench:1");
    } catch (thrown) {
      await end(child);
      throw thrown;
    }
    const engine = dockerLike("Docker Engine", ask, "bench:1", {}, () => end(child));
    return {
      ...engine,
      note: "bridge network",
      shims: ["containerd-shim", "docker-proxy"],
      mark: dir,
      daemons: () => childrenOf(child.pid ?? 0),
    };
  },
};

const podman: Peer = {
  name: "Podman",
  needs: ["podman"],
  async open({ dir, tar }) {
    const socket = join(dir, "p.sock");
    const places = ["--root", join(dir, "root"), "--runroot", join(dir, "run"), "--tmpdir", join(dir, "tmp")];
    const how = ["--cgroup-manager", "cgroupfs", "--storage-driver", "overlay", "--runtime", "runc"];
    await run("podman", ...places, ...how, "import", tar, "bench:1");
    const child = startApart("podman", [...places, ...how, "system", "service", "--time=0", `unix://${socket}`]);
    const ask = asker({ socketPath: socket });
    // Without these it asks for more than a root without CAP_SYS_RESOURCE can give.
    const Ulimits = ["nofile", "nproc"].map((Name) => ({ Name, Soft: 1024, Hard: 1024 }));
    try {
      await until("podman", () => ask("GET", "/_ping"));
    } catch (thrown) {
      await end(child);
      throw thrown;
    }
    const engine = dockerLike("Podman", ask, "localhost/bench:1", { Ulimits }, () => end(child));
    return {
      ...engine,
      note: "with runc, bridge network",
      shims: ["conmon"],
      mark: dir,
      daemons: () => [child.pid ?? 0],
    };
  },
};

const containerd: Peer = {
  name: "containerd",
  needs: ["containerd", "ctr"],
  async open({ dir, rootfs }) {
    const socket = join(dir, "c.sock");
    const config = [
      "version = 2",
      `root = "${join(dir, "root")}"`,
      `state = "${join(dir, "state")}"`,
      'disabled_plugins = ["io.containerd.grpc.v1.cri"]',
      `[grpc]\naddress = "${socket}"`,
      `[ttrpc]\naddress = "${socket}.ttrpc"`,
    ];
    writeFileSync(join(dir, "config.toml"), `${config.join("\n")}\n`);
    const child = startApart("containerd", ["-c", join(dir, "config.toml")]);
    const ctr = (...args: string[]): Promise<string> => run("ctr", "-a", socket, ...args);
    try {
      await until("containerd", () => ctr("version"));
    } catch (thrown) {
      await end(child);
      throw thrown;
    }
    const limits = ["--memory-limit", String(MEMORY_MB * 1024 * 1024), "--seccomp"];
    return {
      name: "containerd",
      note: "through ctr, which has no network; the image as a folder",
      shims: ["containerd-shim"],
      mark: dir,
      daemons: () => childrenOf(child.pid ?? 0),
      start: (id) =>
        runQuietly("ctr", "-a", socket, "run", "-d", ...limits, "--rootfs", "--read-only", rootfs, id, ...COMMAND),
      async stop(id) {
        await ctr("task", "kill", "-s", "SIGTERM", id);
        const runs = async (): Promise<boolean> =>
          new RegExp(`^${id}\\s+\\d+\\s+RUNNING`, "m").test(await ctr("task", "ls"));
        for (let tried = 0; await runs(); tried++) if (tried === 200) await ctr("task", "kill", "-s", "SIGKILL", id);
        await ctr("task", "rm", "-f", id);
      },
      remove: (id) => runQuietly("ctr", "-a", socket, "container", "rm", id),
      list: () => ctr("task", "ls"),
      close: () => end(child),
    };
  },
};

/** A process and what it started that serves all machines: dockerd has a containerd of its own. */
function childrenOf(pid: number): number[] {
  try {
    const children = readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8")
      .trim()
      .split(" ")
      .filter(Boolean)
      .map(Number);
    const named = children.filter((child) => /^containerd$/.test(readFileSync(`/proc/${child}/comm`, "utf8").trim()));
    return [pid, ...named];
  } catch {
    return [pid];
  }
}

export const PEERS: readonly Peer[] = [runc, crun, containerd, podman, docker];
