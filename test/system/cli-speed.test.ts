/** What makes the command quick: one Node process, one file of sources, and completion without a process. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { bundleCli, keepCode } from "../../scripts/bundle-cli.mjs";
import { shell, tempDir } from "../support.ts";
import { ROOT } from "./child.ts";

const has = (program: string): boolean => spawnSync("sh", ["-c", `command -v ${program}`]).status === 0;
const BIN = join(ROOT, "bin/hangar.mjs");

/** A folder for the PATH in which `hangar` is a link to the checkout's, as people put it there. */
function linked(): string {
  const dir = tempDir("hangar-speed");
  symlinkSync(BIN, join(dir, "hangar"));
  return dir;
}

suite("hangar command: startup", () => {
  test("the command is one Node process, whatever Node the box has", {
    skip: has("strace") ? false : "no strace",
  }, async () => {
    const dir = linked();
    // A Node that is not ours comes first in the path; it must not even be looked at.
    writeFileSync(join(dir, "node"), "#!/bin/sh\nexit 99\n");
    chmodSync(join(dir, "node"), 0o755);
    // The bundle is made by the first command after a change of the sources.
    const built = await shell("hangar --version", { cwd: dir, PATH: `${dir}:${process.env["PATH"]}` });
    assert.equal(built.status, 0, built.stderr);
    const log = join(dir, "execs");
    const line = `strace --follow-forks --quiet=all --trace=execve --output="${log}" hangar --version`;
    const { status, stdout, stderr } = await shell(line, { cwd: dir, PATH: `${dir}:${process.env["PATH"]}` });
    assert.deepEqual([status, stderr], [0, ""]);
    assert.match(stdout, /^\d+\.\d+\.\d+\n$/);
    const execs = readFileSync(log, "utf8")
      .split("\n")
      .filter((one) => one.endsWith(" = 0"));
    const nodes = execs.filter((one) => /execve\("[^"]*\/node"/.test(one));
    assert.equal(nodes.length, 1, execs.join("\n"));
    assert.match(nodes[0] ?? "", /node_modules\/node-linux-\w+\/bin\/node/);
  });

  test("the bundle prints the same as the sources", async () => {
    const dir = linked();
    const env = { cwd: dir, PATH: `${dir}:${process.env["PATH"]}`, COLUMNS: "100" };
    for (const words of ["--help", "machines --help", "machines list --help", "machines nothing", "nothing"]) {
      const [bundled, source] = [
        await shell(`hangar ${words}`, env),
        await shell(`"${process.execPath}" "${join(ROOT, "src/cli/main.ts")}" ${words}`, env),
      ];
      assert.deepEqual(bundled, source, words);
    }
    const { name, marks } = JSON.parse(readFileSync(join(ROOT, "node_modules/.cache/cli/bundle.json"), "utf8")) as {
      name: string;
      marks: Record<string, string>;
    };
    assert.ok(existsSync(join(ROOT, "node_modules/.cache/cli", name)));
    assert.ok(existsSync(join(ROOT, "node_modules/.cache/cli", name.replace("cjs", "code"))));
    for (const file of [
      "src/cli/main.ts",
      "src/client/client.ts",
      "package.json",
      "scripts/bundle-cli.mjs",
      "scripts/keep-code.mjs",
    ])
      assert.ok(file in marks, `${file} is looked at for changes`);
  });

  test("the command runs without V8's code cache, and with that of another Node", async () => {
    // As a package has it.
    const home = tempDir("hangar-speed");
    for (const folder of ["bin", "dist"]) mkdirSync(join(home, folder));
    copyFileSync(BIN, join(home, "bin/hangar.mjs"));
    writeFileSync(join(home, "package.json"), readFileSync(join(ROOT, "package.json")));
    const bundle = join(home, "dist/cli.cjs");
    writeFileSync(bundle, bundleCli(ROOT, "src/cli/main.ts", "../src/cli/main.js").text);
    const run = async (): Promise<string> => {
      const { status, stdout, stderr } = await shell(
        `"${process.execPath}" "${join(home, "bin/hangar.mjs")}" nothing`,
        {
          cwd: home,
          HOME: home,
        },
      );
      assert.deepEqual([status, stdout], [2, ""]);
      return stderr;
    };
    const without = await run();
    assert.match(without, /unknown command 'nothing'/);
    keepCode(process.execPath, bundle);
    const code = join(home, "dist/cli.code");
    const own = readFileSync(code);
    assert.equal(await run(), without);
    // The first words of it are V8's version and flags; a file that was cut off is refused as well.
    for (const other of [
      Buffer.concat([Buffer.alloc(16, 7), own.subarray(16)]),
      own.subarray(0, 1000),
      Buffer.alloc(0),
    ]) {
      writeFileSync(code, other);
      assert.equal(await run(), without);
    }
  });

  test("a command with one request loads neither fetch nor Node's HTTP client", async () => {
    const cwd = tempDir("hangar-speed");
    writeFileSync(
      join(cwd, "loaded.cjs"),
      'process.on("exit", () => process.stderr.write(process.moduleLoadList.join("\\n")));',
    );
    const line = `"${process.execPath}" --require ./loaded.cjs "${BIN}" apps list --url http://127.0.0.1:9`;
    const { stderr } = await shell(line, { cwd });
    assert.match(stderr, /there is no answer from http:\/\/127.0.0.1:9/);
    assert.match(stderr, /NativeModule net$/m);
    assert.doesNotMatch(stderr, /undici|NativeModule (_http_client|child_process|crypto|http|http2|https)$/m);
  });
});

/** In each shell: asks its completion of `typed`, whose last word is begun, and prints a word per line. */
const ASK: Record<string, (script: string, typed: readonly string[]) => string> = {
  bash: (script, typed) => `bash -c '. "${script}"
    COMP_WORDS=(hangar ${words(typed)}); COMP_CWORD=${typed.length}; _hangar; printf "%s\\n" "\${COMPREPLY[@]}"'`,
  zsh: (script, typed) => `zsh -f -c 'compdef() { : }; compadd() { shift; print -l -- "$@" }; . "${script}"
    words=(hangar ${words(typed)}); CURRENT=${typed.length + 1}; _hangar'`,
  fish: (script, typed) => `fish --no-config -c '. "${script}"; complete --do-complete "hangar ${typed.join(" ")}"'`,
};
const words = (typed: readonly string[]): string => typed.map((word) => `"${word}"`).join(" ");

suite("shell completion", () => {
  for (const [name, ask] of Object.entries(ASK))
    test(`completion of ${name} starts the command for live names only`, {
      skip: has(name) ? false : `no ${name}`,
    }, async () => {
      const dir = tempDir("hangar-completion");
      const script = join(dir, "script");
      const made = await shell(`"${process.execPath}" "${BIN}" completion ${name}`, { cwd: dir });
      writeFileSync(script, made.stdout);
      // In place of the command: says that it was called, and with what.
      writeFileSync(join(dir, "hangar"), '#!/bin/sh\necho "called $*" >> calls\necho web\n', { mode: 0o755 });
      const complete = async (...typed: string[]): Promise<string[]> => {
        const env = { cwd: dir, HOME: dir, PATH: `${dir}:${process.env["PATH"]}` };
        const { stdout, stderr } = await shell(ask(script, typed), env);
        assert.equal(stderr, "");
        return stdout.split("\n").filter(Boolean);
      };
      const calls = (): string => (existsSync(join(dir, "calls")) ? readFileSync(join(dir, "calls"), "utf8") : "");
      assert.ok((await complete("")).includes("machines"));
      assert.ok((await complete("volumes", "")).includes("create"));
      assert.ok((await complete("tokens", "create", "--n")).includes("--name"));
      assert.deepEqual(await complete("orgs", "list", ""), []);
      assert.equal(calls(), "", "no process was started");
      assert.deepEqual(await complete("apps", "show", ""), ["web"]);
      assert.match(calls(), /^called __complete -- apps show $/m);
    });
});
