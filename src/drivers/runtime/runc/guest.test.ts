import assert from "node:assert/strict";
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { claimsOf, HostClaims } from "#core/host-claims.ts";
import { aLaunch, aMachine } from "#machines/fixtures.ts";
import type { Launch } from "#machines/runtime/driver.ts";
import type { ImageConfig } from "#machines/runtime/image-source.ts";
import { tempDir } from "../../../../test/support.ts";
import { bootFile } from "./boot-file.ts";
import { parseLog } from "./logs/parse.ts";
import { processesOf } from "./processes.ts";
import { preflight } from "./rootfs/preflight.ts";
import { userOf } from "./rootfs/users.ts";
import { UidBlocks } from "./uid-blocks.ts";

const FILES: Record<string, string> = {
  "/etc/passwd": "root:x:0:0:root:/root:/bin/sh\napp:x:1000:1001::/home/app:\nhuge:x:70000:70000::/:\n",
  "/etc/group": "root:x:0:\nstaff:x:50:app,other\nlogs:x:60:app\n",
};
const tree = { read: (path: string) => (FILES[path] === undefined ? undefined : Buffer.from(FILES[path])) };
const image: ImageConfig = {
  entrypoint: ["/entry"],
  cmd: ["serve"],
  env: { A: "image", B: "image" },
  user: "",
  working_dir: "",
};

const launch = (config: Partial<Launch["config"]>, secrets: Record<string, string> = {}): Launch =>
  aLaunch({ boot: "b", config: { image: "x", ...config }, secrets });
const held = (config: Partial<ImageConfig> = {}) => ({
  ref: aMachine().image_ref,
  layers: [],
  config: { ...image, ...config },
  architecture: "amd64",
  labels: {},
  exposed_ports: [],
});

suite("processes of a machine", () => {
  test("users are looked up in the image; ids outside the machine's range are refused", () => {
    assert.deepEqual(userOf(tree, ""), { uid: 0, gid: 0, groups: [], home: "/root" });
    assert.deepEqual(userOf(tree, "app"), { uid: 1000, gid: 1001, groups: [50, 60], home: "/home/app" });
    assert.deepEqual(userOf(tree, "1000:staff"), { uid: 1000, gid: 50, groups: [], home: "/home/app" });
    assert.deepEqual(userOf(tree, "7:8"), { uid: 7, gid: 8, groups: [], home: "/" });
    assert.throws(() => userOf(tree, "nobody"), /no user "nobody"/);
    assert.throws(() => userOf(tree, "app:none"), /no group "none"/);
    for (const user of ["huge", "65536", "4294967295", "99999999999"]) assert.throws(() => userOf(tree, user));
  });

  test("exec replaces the whole command; entrypoint and cmd each replace their own part", () => {
    const argv = (config: Partial<Launch["config"]>) =>
      processesOf(launch(config), held(), tree).map((one) => one.argv);
    assert.deepEqual(argv({}), [["/entry", "serve"]]);
    assert.deepEqual(argv({ init: { cmd: ["other"] } }), [["/entry", "other"]]);
    assert.deepEqual(argv({ init: { entrypoint: ["sh"] } }), [["sh", "serve"]]);
    assert.deepEqual(argv({ init: { exec: ["true"], cmd: ["other"] } }), [["true"]]);
    assert.deepEqual(argv({ processes: [{ exec: ["a"] }, { cmd: ["b"] }] }), [["a"], ["/entry", "b"]]);
    assert.throws(() => processesOf(launch({}), held({ entrypoint: [], cmd: [] }), tree), /what to run/);
  });

  test("the environment merges image, config, secrets and process; platform variables cannot be overridden", () => {
    const variables = (config: Partial<Launch["config"]>): Record<string, string> => {
      const [first] = processesOf(launch(config, { B: "secret", S: "s" }), held(), tree);
      return Object.fromEntries((first?.variables ?? []).map((text) => text.split("=", 2) as [string, string]));
    };
    const plain = variables({ env: { A: "config", SVC_MACHINE_ID: "mine" } });
    assert.deepEqual(
      [plain["A"], plain["B"], plain["SVC_MACHINE_ID"], plain["FLY_APP_NAME"]],
      ["config", "secret", "1781949c61e789", "web"],
    );
    const facts = ["ALLOC_ID", "APP_NAME", "IMAGE_REF", "MACHINE_ID", "MACHINE_NAME", "MACHINE_VERSION", "PRIVATE_IP"];
    for (const fact of [...facts, "PROCESS_GROUP", "PUBLIC_IP", "REGION", "VM_MEMORY_MB"]) {
      assert.notEqual(plain[`SVC_${fact}`], undefined, fact);
      assert.equal(plain[`FLY_${fact}`], plain[`SVC_${fact}`], fact);
    }
    assert.equal(plain["PRIMARY_REGION"], plain["FLY_REGION"]);
    const chosen = variables({
      processes: [
        {
          ignore_app_secrets: true,
          secrets: [{ env_var: "X", name: "S" }],
          env_from: [{ env_var: "ME", field_ref: "id" }],
        },
      ],
    });
    assert.deepEqual(
      [chosen["X"], chosen["S"], chosen["B"], chosen["ME"]],
      ["s", undefined, "image", "1781949c61e789"],
    );
    assert.throws(() => variables({ processes: [{ secrets: [{ env_var: "NONE" }] }] }), /secret NONE/);
  });

  test("a SQLite node comes after the programs, and alone gets the credentials of its backups", () => {
    const secrets = { HANGAR_OBJECTS_ACCESS_KEY: "key", HANGAR_OBJECTS_SECRET_KEY: "hidden", OTHER: "o" };
    const sqlite = { dir: "/data", ack: "one" as const };
    const made = (more: object) => processesOf(launch({ sqlite: { ...sqlite, ...more } }, secrets), held(), tree);
    const [program, node, ...none] = made({ backup: "https://s3.example.com/b" });
    assert.deepEqual([program?.argv, program?.sidecar, none], [["/entry", "serve"], undefined, []]);
    const has = (process: typeof node, text: string): boolean => process?.variables.includes(text) === true;
    const key = "HANGAR_OBJECTS_SECRET_KEY=hidden";
    assert.deepEqual(
      [has(program, key), has(node, key), has(program, "OTHER=o"), has(node, "OTHER=o")],
      [false, true, true, false],
    );
    assert.equal(node?.sidecar, true);
    assert.deepEqual(node?.user, { uid: 0, gid: 0, groups: [], home: "/" });
    assert.match(
      node?.argv.join(" ") ?? "",
      /^\/\.svc\/db\/ld\.so .* --machine --dir \/data .*--backup https:.* --ack one$/,
    );
    const [own, plain] = made({});
    assert.deepEqual([has(own, key), has(plain, key)], [true, false], "without a backup they are the program's");
  });

  test("the boot file for process 1 is a list of NUL-terminated strings", () => {
    const user = { uid: 1, gid: 2, groups: [3], home: "/" };
    const file = bootFile([{ argv: ["a", "b c"], variables: ["X=1"], folder: "/w", user }]);
    const strings = ["1", "2", "1", "3", "/w", "2", "a", "b c", "1", "X=1", ""];
    assert.deepEqual(file.toString().split("\0"), ["0", ...strings]);
    const sidecar = bootFile([{ argv: ["a", "b c"], variables: ["X=1"], folder: "/w", user, sidecar: true }]);
    assert.deepEqual(sidecar.toString().split("\0"), ["1", ...strings]);
  });
});

suite("hostile images", () => {
  const look = (kinds: Record<string, "file" | "folder" | "link" | "other">, where: Record<string, string> = {}) => ({
    kind: (path: string) => kinds[path],
    where: (path: string) => where[path],
  });

  test("an image with links where runc mounts kernel file systems is refused", () => {
    assert.doesNotThrow(() => preflight(look({ "/dev": "folder", "/dev/null": "other" }), ["/srv"]));
    for (const path of ["/dev", "/proc", "/sys", "/dev/shm", "/.svc"]) {
      assert.throws(() => preflight(look({ [path]: "link" }), []), { name: "ImageRefused" });
    }
    assert.throws(() => preflight(look({ "/dev/null": "link" }), []), /\/dev\/null is a link/);
    for (const folder of ["/proc/self/fd/7", "/x/../proc/self", "relative", "/sys", "/dev/fd/8"]) {
      assert.throws(() => preflight(look({}), [folder]), { name: "ImageRefused" }, folder);
    }
    assert.throws(() => preflight(look({}, { "/srv": "/proc/self/fd" }), ["/srv"]), /the kernel's/);
    assert.throws(() => preflight(look({}), [], "/"), /mounted at \//);
    assert.throws(() => preflight(look({}, { "/data": "/dev" }), [], "/data"), /the kernel's/);
  });
});

suite("user id blocks and log lines", () => {
  test("user id blocks of machines never overlap, and stay the same after a restart", () => {
    const [data_dir, claims] = [tempDir(), tempDir()];
    mkdirSync(join(data_dir, "machines"));
    const open = (): UidBlocks => new UidBlocks(new HostClaims("uids", data_dir, claims));
    const blocks = open();
    const bases = Array.from({ length: 500 }, (_, index) => blocks.take(String(index)));
    assert.equal(new Set(bases).size, 500);
    for (const base of bases) assert.equal(base % 65_536, 0);
    const again = open();
    const reloaded = bases.map((base, index) => again.take(String(index), base));
    assert.deepEqual(reloaded, bases);
    blocks.release("0", bases[0] ?? 0);
    assert.equal(blocks.take("0"), bases[0]);
    again.keepOnly([{ id: "7", uid_base: bases[7] ?? 0 }]);
    assert.deepEqual(claimsOf("uids", claims), [{ name: String(bases[7]), of: join(data_dir, "machines/7") }]);
  });

  test("log lines are joined from their fragments, and an unfinished one is returned too", () => {
    const at = "2026-01-01T00:00:00.123456789+00:00";
    const text = [
      `${at} stdout F one`,
      `${at} stdout P tw`,
      `${at} stderr F bad`,
      `${at} stdout F o`,
      "torn",
      `${at} stdout P ?`,
      "",
    ];
    const bytes = Buffer.from(text.join("\n"));
    const { lines, used, rest } = parseLog(bytes);
    assert.deepEqual(
      lines.map(({ stream, message }) => `${stream} ${message}`),
      ["stdout one", "stderr bad", "stdout two"],
    );
    assert.deepEqual(
      rest.map(({ message }) => message),
      ["?"],
    );
    assert.equal(bytes.subarray(used).toString(), `${at} stdout P ?\n`);
    assert.equal(lines[0]?.timestamp, Date.parse("2026-01-01T00:00:00.123Z"));
  });
});
