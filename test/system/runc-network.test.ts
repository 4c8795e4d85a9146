/** The private network from both sides: who reaches whom, under which address, what goes out, and checks with TLS. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { takeDown } from "#drivers/runtime/runc/down.ts";
import { openRuncDriver } from "#drivers/runtime/runc/driver.ts";
import { aLaunchIn } from "#machines/fixtures.ts";
import { privateAddress } from "#machines/names.ts";
import { prefixFromOrg } from "#machines/private-networks.ts";
import type { Launch, Ref, RuntimeDriver } from "#machines/runtime/driver.ts";
import { selfSigned } from "#proxy/x509.ts";
import { busyboxLayer, fixtureImages, MEMORY_KEY, programLayer, realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { Child } from "./child.ts";

const never = new AbortController().signal;
const WAIT = { init: { exec: ["sh", "-c", "trap 'exit 0' TERM; while :; do sleep 1 & wait; done"] } };
/** Answers what it was asked with: the name in the handshake and a header. */
const TLS_SERVER = `
const { readFileSync } = require("node:fs");
const options = { cert: readFileSync("/tls/cert"), key: readFileSync("/tls/key") };
require("node:https")
  .createServer(options, (request, response) => {
    response.statusCode = request.headers["x-pass"] === "yes" ? 200 : 503;
    response.end(request.socket.servername + " " + request.headers.host);
  })
  .listen(443, "::");`;

/** Sends each client the address it connected to. */
const SAYS_WHO = `
const server = require("node:net").createServer((socket) => socket.end(socket.remoteAddress));
server.listen(0, () => console.log(server.address().port));`;

const ASKS = `
const [, host, port] = process.argv;
const socket = require("node:net").connect(Number(port), host);
socket.setTimeout(3000, () => process.exit(1)).on("error", () => process.exit(1)).pipe(process.stdout);`;

suite("network of real machines", { skip: realMachinesMissing() }, () => {
  const dir = mkdtempSync(join(tmpdir(), "hangar-network-"));
  const installation = { data_dir: join(dir, "data"), node_id: randomBytes(8).toString("hex") };
  let driver: RuntimeDriver;

  before(async () => {
    mkdirSync(installation.data_dir);
    const layers = [busyboxLayer(join(dir, "busybox")), programLayer(join(dir, "node"), process.execPath, "node")];
    const images = fixtureImages({ web: { layers } });
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

  const start = async (config: object, org_id = "o1"): Promise<Ref & Launch> => {
    const launch = aLaunchIn(installation.node_id, { image: "web", ...config }, { org_id });
    const { handle } = await driver.start(launch, never);
    return { ...launch, handle };
  };
  const run = async (ref: Ref, ...command: string[]) => await driver.exec(ref, { command, timeout_ms: 20_000 }, never);
  /** The data a machine receives from a server; empty without a response. */
  const hears = async (from: Ref, host: string, port: number): Promise<string> =>
    (await run(from, "/usr/bin/node", "-e", ASKS, host, String(port))).stdout.trim();
  /** As the host's root in a machine's network: with rights that nobody in the machine has. */
  const inside = (ref: Ref, ...words: string[]) => {
    const file = join(installation.data_dir, "machines", ref.id, "machine.json");
    const { pid } = JSON.parse(readFileSync(file, "utf8")) as { pid: number };
    return spawnSync("nsenter", [`--net=/proc/${pid}/ns/net`, ...words], { encoding: "utf8" });
  };

  test("machines reach their own network over IPv6 and IPv4, and no other organization's", async () => {
    const serve = { init: { exec: ["/usr/bin/node", "-e", SAYS_WHO.replace("listen(0", "listen(80")] } };
    const [one, sibling, other] = await Promise.all([start(serve, "o1"), start(serve, "o1"), start(serve, "o2")]);
    const address = (ref: Ref): string => /inet (100\.\S+)\/32/.exec(inside(ref, "ip", "addr").stdout)?.[1] ?? "";
    await until(
      "machines of one organization reach each other",
      async () => (await hears(one, sibling.private_ip, 80)) === one.private_ip,
    );
    await Promise.all([
      hears(one, other.private_ip, 80).then((said) => assert.equal(said, "", "the other organization's")),
      hears(other, one.private_ip, 80).then((said) => assert.equal(said, "", "and back")),
      hears(one, address(sibling), 80).then((said) => assert.equal(said.replace("::ffff:", ""), address(one))),
      hears(one, address(other), 80).then((said) => assert.equal(said, "", "by IPv4")),
      hears(other, address(one), 80).then((said) => assert.equal(said, "", "and back by IPv4")),
    ]);
    for (const { id } of [one, sibling, other]) await driver.destroy(id, never);
  });

  test("a machine can send only from its own address", async () => {
    const [one, sibling] = await Promise.all([start(WAIT), start(WAIT)]);
    const network = prefixFromOrg("o1", installation.node_id);
    const stranger = privateAddress({ id: "0".repeat(14), network, host_id: "0001" });
    const ping = (from: string): number | null =>
      inside(one, "busybox", "ping", "-6", "-c", "1", "-W", "2", "-I", from, sibling.private_ip).status;
    assert.equal(ping(one.private_ip), 0, "under its own");
    const take = (ref: Ref): void => {
      const { status, stderr } = inside(ref, "ip", "addr", "add", `${stranger}/48`, "dev", "eth0", "nodad");
      assert.equal(status, 0, stderr);
    };
    take(one);
    assert.notEqual(ping(stranger), 0, "under one that nobody has");
    take(sibling);
    assert.equal(ping(one.private_ip), 0, "and still under its own");
    // Nobody in the machine can take an address at all.
    assert.notEqual((await run(one, "ip", "addr", "add", `${stranger}/48`, "dev", "eth0")).exit_code, 0);
    for (const { id } of [one, sibling]) await driver.destroy(id, never);
  });

  test("outgoing IPv4 has the host's address, and nothing comes in", async (t) => {
    const machine = await start(WAIT);
    const world = outside(t);
    const server = new Child("ip", ["netns", "exec", world.name, process.execPath, "-e", SAYS_WHO]);
    t.after(() => server.kill());
    const port = (await server.until(/^\d+$/)).trim();
    assert.equal((await hears(machine, world.address, Number(port))).replace("::ffff:", ""), world.host);
    const own = /inet (100\.\S+)\/32/.exec(inside(machine, "ip", "addr").stdout)?.[1] ?? "";
    assert.equal(spawnSync("ip", ["-n", world.name, "route", "add", own, "via", world.host]).status, 0);
    const ping = ["netns", "exec", world.name, "busybox", "ping", "-c", "1", "-W", "2", own];
    assert.notEqual(spawnSync("ip", ping).status, 0, "a machine is not reached from outside");
    await driver.destroy(machine.id, never);
  });

  test("a TLS check uses the configured server name, headers and certificate verification", async () => {
    const { chain, key } = selfSigned(["web.example"], systemClock.now());
    const file = (guest_path: string, text: string) => ({
      guest_path,
      raw_value: Buffer.from(text).toString("base64"),
    });
    const files = [file("/tls/cert", chain), file("/tls/key", key), file("/server.cjs", TLS_SERVER)];
    const machine = await start({ files, init: { exec: ["/usr/bin/node", "/server.cjs"] } });
    const base = { type: "http", protocol: "https", port: 443, path: "/" } as const;
    const headers = [{ name: "X-Pass", values: ["yes"] }];
    const probe = (check: object) => driver.probe(machine, { ...base, ...check }, AbortSignal.timeout(10_000));
    const lenient = { tls_skip_verify: true, tls_server_name: "web.example", headers };
    await until("it comes up", async () => (await probe(lenient)).passing, { every_ms: 100 });
    assert.match((await probe(lenient)).output, /^200[\s\S]*web\.example \[fdaa:/);
    assert.match((await probe({ ...lenient, headers: [] })).output, /^503/);
    const named = { name: "Host", values: ["other.example"] };
    assert.match((await probe({ ...lenient, headers: [...headers, named] })).output, /web\.example other\.example/);
    const strict = await probe({ tls_server_name: "web.example", headers });
    assert.equal(strict.passing, false);
    assert.match(strict.output, /self.signed/i);
    await driver.destroy(machine.id, never);
  });
});

/** A host of the outside world: a network namespace of its own behind a cable to this one, gone after the test. */
function outside(t: TestContext): { name: string; address: string; host: string } {
  const name = `hgt${randomBytes(4).toString("hex")}`;
  const [device, host, address] = [name.slice(0, 12), "198.51.100.1", "198.51.100.2"];
  t.after(() => {
    spawnSync("ip", ["link", "del", device]);
    spawnSync("ip", ["netns", "del", name]);
  });
  for (const words of [
    `netns add ${name}`,
    `link add ${device} type veth peer name eth0 netns ${name}`,
    `addr add ${host}/30 dev ${device}`,
    `link set ${device} up`,
    `-n ${name} addr add ${address}/30 dev eth0`,
    `-n ${name} link set eth0 up`,
  ]) {
    const { status, stderr } = spawnSync("ip", words.split(" "), { encoding: "utf8" });
    assert.equal(status, 0, `ip ${words}: ${stderr}`);
  }
  // What the platform does for the device of the default route.
  writeFileSync(`/proc/sys/net/ipv4/conf/${device}/forwarding`, "1");
  return { name, address, host };
}
