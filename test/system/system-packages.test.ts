/** System packages with the real apt and dpkg, in a root of their own, and the choice of a package manager. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { createHash } from "node:crypto";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { tempDir, until } from "../support.ts";
import { ROOT } from "./child.ts";

const MODULE = join(ROOT, "scripts/system-packages.mjs");

const OS_RELEASE: Record<string, [manager: string | undefined, text: string]> = {
  "Debian 13": ["apt", 'PRETTY_NAME="Debian GNU/Linux 13 (trixie)"\nID=debian\nVERSION_ID="13"\n'],
  "Ubuntu 24.04": ["apt", 'ID=ubuntu\nID_LIKE=debian\nVERSION_ID="24.04"\n'],
  "Linux Mint": ["apt", 'ID=linuxmint\nID_LIKE="ubuntu debian"\n'],
  Fedora: ["dnf", "NAME=Fedora Linux\nID=fedora\nVERSION_ID=44\n"],
  "Rocky Linux": ["dnf", 'ID="rocky"\nID_LIKE="rhel centos fedora"\n'],
  Alpine: ["apk", "ID=alpine\nVERSION_ID=3.24.0\n"],
  "Arch Linux": [undefined, "ID=arch\n"],
  nothing: [undefined, ""],
};

interface Packages {
  managerOf(os_release: string): string | undefined;
  installLine(manager: string | undefined, names: string[]): { line: string | undefined; absent: string[] };
}

const load = async (): Promise<Packages> => (await import(MODULE)) as Packages;

suite("system packages", () => {
  for (const [name, [manager, text]] of Object.entries(OS_RELEASE)) {
    test(`the package manager of ${name} is ${manager ?? "not known"}`, async () => {
      assert.equal((await load()).managerOf(text), manager);
    });
  }

  test("each distribution gets an install command with its own package names", async () => {
    const { installLine } = await load();
    const names = ["runc", "iproute2", "gocryptfs"];
    assert.deepEqual(installLine("apt", names), { line: "apt-get install runc iproute2 gocryptfs", absent: [] });
    assert.deepEqual(installLine("dnf", names), { line: "dnf install runc iproute", absent: ["gocryptfs"] });
    assert.deepEqual(installLine("apk", names), { line: "apk add runc iproute2 gocryptfs", absent: [] });
    assert.equal(installLine(undefined, names).line, undefined);
  });

  const apt = process.getuid?.() === 0 && existsSync("/usr/bin/apt-get") && existsSync("/usr/bin/dpkg-deb");
  const skip = apt ? false : "needs root and apt";
  test("a missing package and one that cannot be installed do not prevent others", { skip }, () => {
    const box = aptBox(["good", "fine", "broken"]);
    const wanted = Object.fromEntries(["good", "broken", "fine", "no-such"].map((n) => [`hangar-test-${n}`, `${n}?`]));
    const first = box.bring(wanted);
    assert.deepEqual(box.installed(), ["hangar-test-fine", "hangar-test-good"], first);
    assert.match(first, /could not be installed:\n +hangar-test-broken: without it, broken\?\n +hangar-test-no-such: /);
    assert.equal(box.bring({ "hangar-test-no-such": "no-such?" }).match(/could not/g)?.length, 1);
    assert.equal(box.bring({ "hangar-test-no-such": "no-such?" }), "", "what no source has is said once");
  });

  test("a second installation waits for the first, and services stay off while one runs", { skip }, async () => {
    const box = aptBox(["good", "slow"]);
    const slow = box.start({ "hangar-test-slow": "slow?" });
    await until("the first has dpkg's lock", () => existsSync(box.entered));
    assert.equal(spawnSync(box.policy).status, 101);
    const second = box.start({ "hangar-test-good": "good?" });
    await until("the second waits", () => second.output().includes("Waiting for another program"));
    box.release();
    assert.deepEqual([await slow.ended, await second.ended], [0, 0], second.output());
    assert.deepEqual(box.installed(), ["hangar-test-good", "hangar-test-slow"]);
    assert.ok(!existsSync(box.policy));
  });

  test("services start again after the installation was killed", { skip }, async () => {
    const box = aptBox(["slow"]);
    const slow = box.start({ "hangar-test-slow": "slow?" });
    await until("dpkg runs", () => existsSync(box.entered));
    slow.kill();
    await slow.ended;
    assert.equal(spawnSync(box.policy).status, 0);
    assert.ok(!existsSync(box.policy), "it removed itself");
    box.release();
  });
});

/** A package database, package source and root folder that apt and dpkg take for the system's. */
function aptBox(names: readonly string[]) {
  const dir = tempDir("hangar-apt");
  for (const folder of ["repo", "dpkg/info", "dpkg/updates", "root", "etc/sources.list.d", "state/lists/partial"])
    mkdirSync(join(dir, folder), { recursive: true });
  for (const folder of ["cache/archives/partial", "etc/preferences.d", "etc/apt.conf.d", "etc/trusted.gpg.d"])
    mkdirSync(join(dir, folder), { recursive: true });
  for (const file of ["dpkg/status", "dpkg/available"]) writeFileSync(join(dir, file), "");
  const stanzas = names.map((name) => debianPackage(dir, `hangar-test-${name}`, name === "broken"));
  writeFileSync(join(dir, "repo/Packages"), stanzas.join("\n"));
  writeFileSync(join(dir, "etc/sources.list"), `deb [trusted=yes] file:${dir}/repo ./\n`);
  writeFileSync(
    join(dir, "apt.conf"),
    `Dir::Etc "${dir}/etc"; Dir::State "${dir}/state"; Dir::Cache "${dir}/cache";
Dir::State::status "${dir}/dpkg/status"; APT::Sandbox::User "root";
DPkg::Options { "--admindir=${dir}/dpkg"; "--instdir=${dir}/root"; "--force-script-chrootless"; "--log=${dir}/log"; };\n`,
  );
  const env = { ...process.env, APT_CONFIG: join(dir, "apt.conf"), DPKG_ADMINDIR: join(dir, "dpkg") };
  const [told, policy, entered, gate] = ["told", "policy", "entered", "gate"].map((name) => join(dir, name)) as Four;
  spawnSync("mkfifo", [gate]);
  const args = (wanted: Record<string, string>): string[] => {
    const options = `{ say: (text) => console.log(text), told: ${JSON.stringify(told)}, policy: ${JSON.stringify(policy)} }`;
    const code = `import { bringSystemPackages } from ${JSON.stringify(MODULE)};
bringSystemPackages(${JSON.stringify(wanted)}, ${options});`;
    return ["--input-type=module", "-e", code];
  };
  const bring = (wanted: Record<string, string>): string => {
    const { stdout, status, stderr } = spawnSync(process.execPath, args(wanted), { env, encoding: "utf8" });
    assert.equal(status, 0, stderr);
    return stdout;
  };
  const start = (wanted: Record<string, string>): Running => {
    const child = spawn(process.execPath, args(wanted), { env, stdio: ["ignore", "pipe", "pipe"] });
    let said = "";
    for (const stream of [child.stdout, child.stderr]) stream.on("data", (data) => (said += data));
    const ended = new Promise<number | null>((done) => child.once("exit", done));
    return { ended, kill: () => child.kill("SIGKILL"), output: () => said };
  };
  /** Lets the package `slow` go on. Opened for both, so that it does not wait for a reader. */
  const release = (): void => writeFileSync(gate, "go\n", { flag: "r+" });
  const installed = (): string[] =>
    spawnSync("dpkg-query", ["-W", "-f", "$" + "{Package}\n"], { env, encoding: "utf8" })
      .stdout.trim()
      .split("\n");
  return { bring, start, release, installed, policy, entered };
}

type Four = [string, string, string, string];

interface Running {
  ended: Promise<number | null>;
  kill(): void;
  output(): string;
}

/** Makes a package; answers how a package source describes it. `broken`: it needs what is nowhere. */
function debianPackage(dir: string, name: string, broken: boolean): string {
  const folder = join(dir, "build", name);
  mkdirSync(join(folder, "DEBIAN"), { recursive: true });
  const control = `Package: ${name}\nVersion: 1\nArchitecture: all\nMaintainer: test <test@example.org>\n${
    broken ? "Depends: hangar-test-nowhere\n" : ""
  }Description: a test\n`;
  writeFileSync(join(folder, "DEBIAN/control"), control);
  if (name.endsWith("slow"))
    writeFileSync(join(folder, "DEBIAN/postinst"), `#!/bin/sh\n: > ${dir}/entered\nread line < ${dir}/gate\n`, {
      mode: 0o755,
    });
  const file = `${name}.deb`;
  const built = spawnSync("dpkg-deb", ["--build", folder, join(dir, "repo", file)], { encoding: "utf8" });
  assert.equal(built.status, 0, built.stderr);
  const bytes = readFileSync(join(dir, "repo", file));
  const digest = createHash("sha256").update(bytes).digest("hex");
  return `${control}Filename: ./${file}\nSize: ${bytes.length}\nSHA256: ${digest}\n`;
}
