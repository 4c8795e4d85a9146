/** Images that lack what most have, or have it in another form: each must start, and find what a program needs. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { entry, file, dir as folder, hardlink, makeImage, ociArchive, symlink, tar } from "#drivers/images/fixtures.ts";
import { bootstrapRoot, packageRoot, packagesMissing } from "../debian-root.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { tempDir, until } from "../support.ts";
import { command, type ForeignMachines, foreignMachines } from "./foreign-machines.ts";

const PACKAGES = ["dash", "coreutils", "grep"];
const PASSWD = file("etc/passwd", "root:x:0:0::/root:/bin/sh\napp:x:1000:1000::/home/app:/bin/sh\n");
const GROUP = file("etc/group", "root:x:0:\napp:x:1000:\nstaff:x:50:app\n");
/** What the machine's own process says about itself, where any user can write. */
const SAY = "{ id -u; id -g; pwd; } > /said/it; exec sleep 1000";
const SAID = entry({ path: "said/", type: "directory", mode: 0o1777 });

interface Odd {
  /** Above the packages. */
  layers?: Buffer[];
  config?: Record<string, unknown>;
  /** What the machine's process said. */
  said?: string;
  /** A command in the machine, and what it writes. */
  sh?: [command: string, output: string];
}

const ODD: Record<string, Odd> = {
  "resolv.conf is a link to nowhere, hosts a link": {
    layers: [
      tar(symlink("etc/resolv.conf", "/run/systemd/resolve/stub.conf"), symlink("etc/hosts", "hosts.d/all"), file("x")),
    ],
    sh: ["head -c 10 /etc/resolv.conf; head -n 1 /etc/hosts", "nameserver127.0.0.1 localhost\n"],
  },
  "there is no /tmp, no /etc/passwd and no /etc/hosts": {
    layers: [
      tar(file(".wh.tmp", ""), file("etc/.wh.passwd", ""), file("etc/.wh.group", ""), file("etc/.wh.hosts", "")),
    ],
    said: "0\n0\n/\n",
    sh: ["stat -c %a /tmp; head -n 1 /etc/hosts", "1777\n127.0.0.1 localhost\n"],
  },
  "there is no /etc": {
    layers: [tar(file(".wh.etc", ""))],
    sh: ["head -n 1 /etc/hosts", "127.0.0.1 localhost\n"],
  },
  "the user is a name": { layers: [tar(PASSWD, GROUP)], config: { User: "app" }, said: "1000\n1000\n/\n" },
  "the user is a number nobody knows": { config: { User: "4711" }, said: "4711\n0\n/\n" },
  "the user is a number and a group's": { config: { User: "4711:50" }, said: "4711\n50\n/\n" },
  "the user is a name and a group": {
    layers: [tar(PASSWD, GROUP)],
    config: { User: "app:staff" },
    said: "1000\n50\n/\n",
  },
  "the working folder does not exist": { config: { WorkingDir: "/srv/app" }, said: "0\n0\n/srv/app\n" },
  "the working folder has no slash": { config: { WorkingDir: "srv/app/" }, said: "0\n0\n/srv/app\n" },
  "the program is found by PATH, and PATH is not said": {
    config: { Entrypoint: ["sh", "-c", SAY], Cmd: null, Env: ["A=b"] },
  },
  "PATH is the image's own": {
    layers: [tar(folder("opt"), symlink("opt/begin", "/bin/sh"))],
    config: { Entrypoint: ["begin", "-c", SAY], Cmd: null, Env: ["PATH=/opt:/usr/bin"] },
    said: "0\n0\n/\n",
  },
  "/var/run is a link": {
    layers: [tar(symlink("var/run", "/run"), file("run/x", "there"))],
    sh: ["cat /var/run/x", "there"],
  },
  "a hundred layers": {
    layers: Array.from({ length: 100 }, (_, i) => tar(file(`deep/${i}`, String(i)), file("deep/top", String(i)))),
    sh: ["ls /deep | wc -l; cat /deep/top", "101\n99"],
  },
  "whiteouts and opaque folders over layers": {
    layers: [
      tar(file("a/1"), file("a/2"), file("b/1"), file("c")),
      tar(file("a/.wh.1", ""), file("b/.wh..wh..opq", ""), file("b/2"), file(".wh.c", "")),
    ],
    sh: ["ls -d /a/* /b/* /c 2>&1 | grep -v cannot", "/a/2\n/b/2\n"],
  },
  "names of 200 bytes, hard links and setuid files": {
    layers: [
      tar(
        file(`${"d".repeat(150)}/${"f".repeat(200)}`, "long"),
        file("one", "same"),
        hardlink("two", "one"),
        entry({ path: "su", body: "#!/bin/sh\nid -u\n", mode: 0o4755 }),
      ),
    ],
    sh: ["cat /dd*/ff*; stat -c ' %h' /two; /su", "long 2\n0\n"],
  },
};

suite("unusual images", { skip: realMachinesMissing() ?? packagesMissing(PACKAGES) }, () => {
  const mmdebstrap = spawnSync("which", ["mmdebstrap"]).status === 0 ? false : "mmdebstrap is missing";
  const ends: (() => unknown)[] = [];
  const dir = tempDir();
  let base: Buffer;
  let debian = "";
  let machines: ForeignMachines;

  before(async () => {
    const root = join(dir, "root");
    mkdirSync(root);
    packageRoot(root, PACKAGES);
    command("tar", "-C", root, "-cf", join(dir, "root.tar"), ".");
    base = readFileSync(join(dir, "root.tar"));
    // Before the platform is there: it takes a minute in which nothing else happens here.
    if (!mmdebstrap) debian = bootstrapRoot(["python3-minimal"]);
    machines = await foreignMachines({ after: (end) => void ends.push(end as () => unknown) });
  });

  after(async () => {
    for (const end of ends) await end();
    rmSync(dir, { recursive: true, force: true });
  });

  for (const [at, [what, { layers = [], config, said, sh }]] of Object.entries(ODD).entries()) {
    test(`a machine starts where ${what}`, async (t) => {
      const image = makeImage([base, tar(SAID), ...layers], { Cmd: ["/bin/sh", "-c", SAY], ...config });
      const brought = await machines.bring(`odd:${at}`, ociArchive(image));
      assert.equal(brought.status, 201, brought.text);
      const id = await machines.run(t, { image: `odd:${at}` });
      const heard = await until("it says who it is", async () => {
        const text = await machines.sh(id, "cat /said/it || true");
        return text.split("\n").length === 4 && text;
      });
      if (said !== undefined) assert.equal(heard, said);
      if (sh) assert.equal(await machines.sh(id, sh[0]), sh[1]);
    });
  }

  test("a Debian root file system of mmdebstrap starts and runs its Python", { skip: mmdebstrap }, async (t) => {
    const brought = await machines.bring("debian:1", debian);
    assert.equal(brought.status, 201, brought.text);
    const id = await machines.run(t, { image: "debian:1", init: { exec: ["python3", "-c", "input()"], tty: true } });
    const python = 'python3 -c \'import os; print(os.readlink("/dev/fd"), open("/dev/null").read() == "")\'';
    assert.equal(await machines.sh(id, python), "/proc/self/fd True\n");
  });
});
