/** Services of real machines, with web servers from Debian and curl and openssl as their clients. */
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { after, before, suite, test } from "node:test";
import { promisify } from "node:util";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { freePort } from "#proxy/fixtures.ts";
import { packageRoot, packagesMissing } from "../debian-root.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { fixtureImages, realMachinesMissing } from "../rootfs.ts";
import { shell, tempDir, until } from "../support.ts";
import { nodeIdOf } from "./leaks.ts";

const execute = promisify(execFile);
const INTERNAL = 8080;
const GUEST = { cpu_kind: "shared", cpus: 1, memory_mb: 256 };
const WEB_SERVER = ["python3", "-m", "http.server", String(INTERNAL), "--bind", "::", "--directory", "/srv"];

interface Ends {
  after(end: () => unknown): void;
}

suite("services of real machines", { skip: realMachinesMissing() ?? packagesMissing(["python3", "curl"]) }, () => {
  const ends: (() => unknown)[] = [];
  const data_dir = tempDir();
  let platform: TestPlatform;

  before(async () => {
    const later = { after: (end: () => unknown) => void ends.push(end) };
    const images = fixtureImages({ debian: { layers: [packageRoot(tempDir(), ["python3"])] } });
    const env = {
      HANGAR_DRIVER: "runc",
      HANGAR_DATA_DIR: data_dir,
      HANGAR_AUTOSTOP_IDLE: "1",
      HANGAR_PROXY_WORKERS: "2",
    };
    platform = await testPlatform(later, env, { images });
  });

  after(async () => {
    for (const end of ends) await end();
    if (existsSync(join(data_dir, "node_id")))
      await takeDown({ data_dir, node_id: nodeIdOf(data_dir), clock: systemClock, log: silentLog });
  });

  async function app(name: string): Promise<void> {
    await platform.ask("POST /v1/apps", { body: { app_name: name, org_slug: "personal" } });
    await platform.ask(`POST /v1/apps/${name}/ip_assignments`, { body: { type: "shared_v4" } });
  }

  /** A machine that runs a program of Debian; without services a worker. Removed with the test. */
  async function machine(t: Ends, app_name: string, config: object): Promise<string> {
    const body = { config: { image: "debian", guest: GUEST, init: { exec: WEB_SERVER }, ...config } };
    const made = await platform.ask(`POST /v1/apps/${app_name}/machines`, { body });
    assert.equal(made.status, 200, made.text);
    t.after(() => platform.ask(`DELETE /v1/apps/${app_name}/machines/${made.body.id}?force=true`));
    await platform.ask(`GET /v1/apps/${app_name}/machines/${made.body.id}/wait?state=started`);
    return made.body.id as string;
  }

  /** What a web server's only page says. */
  const page = (words: string): object => ({
    files: [{ guest_path: "/srv/index.html", raw_value: Buffer.from(`${words}\n`).toString("base64") }],
  });

  const service = (ports: object[], more: object = {}): object => ({
    services: [{ protocol: "tcp", internal_port: INTERNAL, ports, ...more }],
  });

  async function curl(...args: string[]): Promise<string> {
    const { stdout } = await execute("curl", ["--silent", "--show-error", "--max-time", "60", ...args]);
    return stdout;
  }

  test("sequential requests are spread over the machines of an app", async (t) => {
    await app("spread");
    const port = await freePort();
    const open = service([{ port, handlers: ["http"] }]);
    const names = ["one", "two", "three"];
    await Promise.all(names.map((name) => machine(t, "spread", { ...open, ...page(name) })));
    const url = `http://127.0.0.1:${port}/`;
    const counted = async (script: string): Promise<Record<string, number>> => {
      const { stdout, stderr, status } = await shell(script, { URL: url });
      assert.equal(status, 0, stderr);
      const said = stdout.trim().split("\n");
      assert.equal(said.length, 60);
      return Object.fromEntries(names.map((name) => [name, said.filter((one) => one === name).length]));
    };
    await until("all three answer", async () => {
      const said = await Promise.all(names.map(() => curl("--retry", "9", url)));
      return new Set(said).size === 3;
    });
    const even = { one: 20, two: 20, three: 20 };
    assert.deepEqual(await counted('for i in $(seq 60); do curl -sS "$URL"; done'), even, "a connection each");
    assert.deepEqual(await counted('curl -sS "$URL?[1-60]"'), even, "one connection");
  });

  /** The names in the certificate that a TLS server shows, or what openssl says went wrong. */
  async function certificate(port: number, ...args: string[]): Promise<string> {
    const script = `openssl s_client -connect 127.0.0.1:${port} ${args.join(" ")} </dev/null 2>&1`;
    const { stdout } = await shell(`${script} | tee /dev/stderr | openssl x509 -noout -ext subjectAltName`, {});
    return stdout.trim().split("\n").at(-1)?.trim() ?? "";
  }

  test("a TLS port of a single app serves any server name, with curl -k and openssl s_client", async (t) => {
    await app("alone");
    const port = await freePort();
    await machine(t, "alone", { ...service([{ port, handlers: ["tls", "http"] }]), ...page("alone") });
    const url = `https://127.0.0.1:${port}/`;
    const ways = [[], ["--tlsv1.2", "--tls-max", "1.2"], ["--tlsv1.3"], ["--http1.1"], ["--http2"]];
    await until("the web server answers", async () => (await curl("-k", "--retry", "9", url)) === "alone\n");
    for (const way of ways) {
      assert.equal(await curl("-k", ...way, url), "alone\n", `no server name, ${way.join(" ")}`);
      const named = ["--connect-to", `::127.0.0.1:${port}`, "https://shop.example.com/"];
      assert.equal(await curl("-k", ...way, ...named), "alone\n", `an unknown name, ${way.join(" ")}`);
    }
    for (const version of ["-tls1_2", "-tls1_3"])
      for (const name of ["-noservername", "-servername shop.example.com", "-servername alone.localhost"])
        assert.equal(await certificate(port, version, name), "DNS:localhost, DNS:*.localhost", `${version} ${name}`);
  });

  test("on a shared TLS port only an app with default_self_signed serves unknown names", async (t) => {
    const port = await freePort();
    const shared = async (name: string, tls_options: object): Promise<void> => {
      await app(name);
      await machine(t, name, { ...service([{ port, handlers: ["tls", "http"], tls_options }]), ...page(name) });
    };
    const ask = async (name: string): Promise<string> =>
      await curl("-k", "--connect-to", `::127.0.0.1:${port}`, `https://${name}/`).catch(
        (thrown: unknown) => `curl ends with ${(thrown as { code: number }).code}`,
      );
    await shared("first", {});
    await shared("second", {});
    for (const name of ["first", "second"])
      await until(`${name} answers`, async () => (await ask(`${name}.localhost`)) === `${name}\n`);
    assert.equal(await ask("shop.example.com"), "curl ends with 35");
    await shared("third", { default_self_signed: true });
    await until("third answers", async () => (await ask("third.localhost")) === "third\n");
    assert.equal(await ask("shop.example.com"), "third\n");
    assert.equal(await curl("-k", `https://127.0.0.1:${port}/`), "third\n");
    assert.equal(await ask("first.localhost"), "first\n");
  });

  test("autostop keeps min_machines_running of each service, whatever else of the app runs", async (t) => {
    await app("steady");
    const [web, other, probe] = [await freePort(), await freePort(), await freePort()];
    const open = (port: number): object[] => [{ port, handlers: ["http"] }];
    const rests = { autostart: true, autostop: "stop" };
    await machine(t, "steady", { init: { exec: ["sleep", "infinity"] } });
    await machine(t, "steady", service(open(other)));
    const kept = { ...service(open(web), { ...rests, min_machines_running: 1 }), ...page("kept") };
    const ids = [await machine(t, "steady", kept), await machine(t, "steady", kept)];
    const ask = async (): Promise<string> => await curl("--retry", "9", `http://127.0.0.1:${web}/`);
    const see = async (id: string) => (await platform.ask(`GET /v1/apps/steady/machines/${id}`)).body;
    const stops = async (): Promise<number> => {
      const seen = await Promise.all(ids.map(see));
      const events = seen.flatMap(({ events }) => events as { status: string; source: string }[]);
      return events.filter(({ status, source }) => status === "stopping" && source === "proxy").length;
    };
    /** Requests keep coming meanwhile. */
    const steadily = async (what: string, look: () => Promise<boolean>): Promise<void> =>
      void (await until(what, async () => (await ask()) === "kept\n" && (await look())));
    const states = async (): Promise<string> =>
      (await Promise.all(ids.map(see)))
        .map(({ state }) => String(state))
        .sort()
        .join(" ");
    await steadily("one of two is enough", async () => (await states()) === "started stopped");
    const before = await stops();
    // A machine that may rest is stopped three times: so often was everything looked at, and more.
    const resting = await machine(t, "steady", service(open(probe), rests));
    for (let i = 0; i < 3; i++) {
      await steadily("the idle machine is stopped", async () => (await see(resting)).state === "stopped");
      await platform.ask(`POST /v1/apps/steady/machines/${resting}/start`);
    }
    assert.deepEqual([await states(), await stops()], ["started stopped", before]);
  });
});
