/**
 * Third-party tests of the registry: the conformance program of the OCI distribution specification, and crane. Both
 * are Go programs that come through the Go module proxy; where there is no Go or no proxy they are skipped, with the reason.
 */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { after, before, suite, type TestContext, test } from "node:test";
import { busyboxLayer, realMachinesMissing } from "../rootfs.ts";
import { tempDir } from "../support.ts";
import { command, type ForeignMachines, foreignMachines } from "./foreign-machines.ts";

const CRANE = "github.com/google/go-containerregistry/cmd/crane@v0.22.1";
const CONFORMANCE = "github.com/opencontainers/distribution-spec/conformance@v0.0.0-20260627150115-216c04cd22ce";

async function run(program: string, args: readonly string[], env: Record<string, string> = {}) {
  const child = spawn(program, args, { env: { ...process.env, ...env }, stdio: ["ignore", "pipe", "pipe"] });
  const ended = new Promise<number>((resolve) => {
    child.once("error", () => resolve(-1)).once("close", (code) => resolve(code ?? -1));
  });
  const [stdout, stderr] = await Promise.all([text(child.stdout), text(child.stderr)]);
  return { status: await ended, stdout: stdout.trim(), stderr: stderr.trim() };
}

/** The program, from an environment variable or built; undefined, and the test skipped, where it cannot be built. */
async function judge(t: TestContext, module: string, variable: string): Promise<string | undefined> {
  const given = process.env[variable];
  if (given) return given;
  const skip = (why: string): undefined => {
    t.skip(`${why} (or ${variable} names the program)`);
    return undefined;
  };
  if (spawnSync("go", ["version"]).status !== 0) return skip("there is no Go toolchain");
  const dir = tempDir();
  const env = { GOBIN: dir, GOPATH: join(dir, "path"), GOFLAGS: "-modcacherw", GOTOOLCHAIN: "local" };
  const { status, stderr } = await run("go", ["install", module], env);
  if (status !== 0) return skip(`go install ${module}: ${stderr.split("\n").slice(-2).join(" ")}`);
  const [name = ""] = readdirSync(dir).filter((file) => file !== "path");
  return join(dir, name);
}

suite("judges of the registry", { skip: realMachinesMissing(), timeout: 30 * 60_000 }, () => {
  const dir = tempDir();
  const ends: (() => unknown)[] = [];
  let machines: ForeignMachines;
  before(async () => {
    machines = await foreignMachines({ after: (end) => void ends.push(end as () => unknown) });
  });
  after(async () => {
    for (const end of ends) await end();
  });

  test("the conformance program of the distribution specification finds no failure", async (t) => {
    const program = await judge(t, CONFORMANCE, "HANGAR_OCI_CONFORMANCE");
    if (!program) return;
    const results = join(dir, "results");
    const { status, stdout, stderr } = await run(program, [], {
      OCI_REGISTRY: new URL(machines.base_url).host,
      OCI_TLS: "disabled",
      OCI_REPO1: "personal/conformance1",
      OCI_REPO2: "personal/conformance2",
      OCI_USERNAME: "anyone",
      OCI_PASSWORD: machines.token,
      OCI_VERSION: "1.1",
      OCI_RESULTS_DIR: results,
    });
    const junit = readFileSync(join(results, "junit.xml"), "utf8");
    const failed = [...junit.matchAll(/<testcase name="([^"]*)"[^>]*>\s*<(?:failure|error)/g)].map(([, name]) => name);
    assert.deepEqual(failed, [], stdout + stderr);
    assert.equal(status, 0, stdout + stderr);
    const tests = Number(/tests="(\d+)"/.exec(junit)?.[1]);
    assert.ok(tests > 500, `it looked at ${tests} things only`);
    t.diagnostic(`${tests} checks`);
  });

  test("crane pushes, pulls, copies, mutates, lists and deletes, and a machine boots what it made", async (t) => {
    const program = await judge(t, CRANE, "HANGAR_CRANE");
    if (!program) return;
    const host = new URL(machines.base_url).host;
    const name = (repository: string): string => `${host}/personal/${repository}`;
    const crane = async (...args: string[]): Promise<string> => {
      const { status, stdout, stderr } = await run(program, [...args, "--insecure"], { DOCKER_CONFIG: dir });
      assert.equal(status, 0, `crane ${args.join(" ")}: ${stderr}`);
      return stdout;
    };
    const denied = await run(program, ["ls", name("crane"), "--insecure"], { DOCKER_CONFIG: dir });
    assert.match(denied.stderr, /UNAUTHORIZED/);
    const auth = Buffer.from(`anyone:${machines.token}`).toString("base64");
    writeFileSync(join(dir, "config.json"), JSON.stringify({ auths: { [host]: { auth } } }));

    mkdirSync(join(dir, "root"));
    command("tar", "-C", busyboxLayer(join(dir, "root")), "-cf", join(dir, "layer.tar"), ".");
    await crane("append", "--new_layer", join(dir, "layer.tar"), "--new_tag", name("crane:1"));
    const digest = await crane("digest", name("crane:1"));
    await crane("pull", name("crane:1"), join(dir, "pulled.tar"));
    await crane("push", join(dir, "pulled.tar"), name("pushed:1"));
    assert.equal(await crane("digest", name("pushed:1")), digest, "what is pulled and pushed is the same");
    await crane("copy", name("crane:1"), name("copied:1"));
    assert.equal(await crane("digest", name("copied:1")), digest);
    await crane("mutate", name("copied:1"), "--cmd", "sleep,1000", "--env", "FROM=crane", "--tag", name("copied:2"));
    const config = JSON.parse(await crane("config", name("copied:2"))) as { config: { Cmd: string[]; Env: string[] } };
    assert.deepEqual([config.config.Cmd, config.config.Env.includes("FROM=crane")], [["sleep", "1000"], true]);
    assert.deepEqual((await crane("ls", name("copied"))).split("\n"), ["1", "2"]);
    await crane("validate", "--remote", name("copied:2"));
    const id = await machines.run(t, { image: "registry.hangar/personal/copied:2" });
    assert.equal(await machines.sh(id, "echo $FROM"), "crane\n");
    await crane("delete", `${name("pushed")}@${digest}`);
    const gone = await run(program, ["digest", name("pushed:1"), "--insecure"], { DOCKER_CONFIG: dir });
    assert.match(gone.stderr, /MANIFEST_UNKNOWN|404/);
  });
});
