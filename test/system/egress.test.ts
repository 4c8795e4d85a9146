/** What machines reach outside their network: closed ranges, egress policies of apps, names in them, and the bound of connections. */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { randomBytes } from "node:crypto";
import { createSocket } from "node:dgram";
import { readdirSync, writeFileSync } from "node:fs";
import { after, before, suite, test } from "node:test";
import { devicePrefix } from "#drivers/net/names.ts";
import { gatewayAddress } from "#machines/names.ts";
import { NETWORK_LIMITS } from "#network/limits.ts";
import { packagesMissing } from "../debian-root.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { until } from "../support.ts";
import { Child } from "./child.ts";
import { type DebianMachine, type DebianMachines, debianMachines } from "./debian-machines.ts";
import { nodeIdOf } from "./leaks.ts";

const PACKAGES = ["python3"];
const [a = 0, b = 0] = randomBytes(2);
/** Addresses of the world outside: one that anybody has, those that are closed, and their IPv6 like. */
const HOST = `198.51.100.${(a & 0xfc) | 1}`;
const PUBLIC = `198.51.100.${(a & 0xfc) | 2}`;
const PRIVATE = `10.213.${a}.${b}`;
const METADATA = `169.254.${(a % 128) + 100}.${b}`;
const PUBLIC6 = `2001:db8:${a}:${b}::2`;
const ULA = `fd12:${a}:${b}::2`;

/** Answers every TCP connection with a line, echoes lines, and counts the datagrams of different senders. */
const WORLD = `
import socket, threading
senders = set()
def datagrams():
    udp = socket.socket(socket.AF_INET6, socket.SOCK_DGRAM)
    udp.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1 << 24)
    udp.bind(("::", 80))
    while True:
        data, sender = udp.recvfrom(100)
        if data == b"how many": udp.sendto(str(len(senders)).encode(), sender)
        elif data == b"ping": udp.sendto(b"pong", sender)
        else: senders.add(sender[:2])
def talk(connection):
    with connection:
        connection.sendall(b"hello\\n")
        while data := connection.recv(100): connection.sendall(data)
threading.Thread(target=datagrams, daemon=True).start()
server = socket.create_server(("::", 80), family=socket.AF_INET6, dualstack_ipv6=True)
other = socket.create_server(("::", 81), family=socket.AF_INET6, dualstack_ipv6=True)
def serve(one):
    while True: threading.Thread(target=talk, args=(one.accept()[0],), daemon=True).start()
threading.Thread(target=serve, args=(other,), daemon=True).start()
print("ready", flush=True)
serve(server)
`;
/** Connects over TCP; prints what it receives, or that the port is closed and whether that took a timeout. */
const TCP = `
import socket, sys, time
began = time.monotonic()
try:
    print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).recv(10).decode().strip())
except OSError as problem:
    print("closed", "at once" if time.monotonic() - began < 3 else "by silence", problem)
`;
const UDP = `
import socket, sys
asker = socket.socket(socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET, socket.SOCK_DGRAM)
asker.settimeout(3)
try:
    asker.connect((sys.argv[1], 80))
    asker.send(sys.argv[2].encode())
    print(asker.recv(100).decode())
except OSError as problem:
    print("closed", problem)
`;
/** Looks a name up as programs do, then connects. */
const NAMED = `
import socket, sys
try:
    print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 5).recv(10).decode().strip())
except OSError as problem:
    print("closed", problem)
`;
/** Holds a connection, says something on it every 100 ms, and prints how it ends. */
const HOLDS = `
import socket, sys, time
line = socket.create_connection((sys.argv[1], 80), 5)
print(line.recv(10).decode().strip(), flush=True)
try:
    while True:
        line.sendall(b"still here")
        line.recv(100)
        time.sleep(0.1)
except OSError as problem:
    print("ended", problem, flush=True)
import signal; signal.pause()
`;
/**
 * One datagram each from so many ports, then a connection while the flood goes on. The kernel counts what earlier
 * programs left behind too, and gives that room back when it expires: the flood has to take it before the connection.
 */
const FLOOD = `
import socket, sys, threading
first, count = 10000, int(sys.argv[2])
def send(port):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
        one.bind(("", port))
        one.sendto(b"x", (sys.argv[1], 80))
for port in range(first, first + count): send(port)
def go_on():
    while True:
        for port in range(first + count, 65536): send(port)
threading.Thread(target=go_on, daemon=True).start()
try:
    print(socket.create_connection((sys.argv[1], 80), 2).recv(10).decode().strip())
except OSError as problem:
    print("closed", problem)
`;

/** A name server of the outside: names of example.test, with a life of a second. */
async function nameServer(names: Record<string, string>): Promise<{ port: number; close(): void }> {
  const server = createSocket("udp4");
  server.on("message", (question, from) => {
    const labels: string[] = [];
    let at = 12;
    for (; question[at]; at += (question[at] ?? 0) + 1)
      labels.push(question.toString("latin1", at + 1, at + 1 + (question[at] ?? 0)));
    const address = names[labels.join(".")];
    const asksA = question.readUInt16BE(at + 1) === 1;
    const header = Buffer.from(question.subarray(0, 12));
    header.writeUInt16BE(address ? 0x8180 : 0x8183, 2);
    header.writeUInt16BE(address && asksA ? 1 : 0, 6);
    header.writeUInt32BE(0, 8);
    const record = [0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 1, 0, 4, ...(address ?? "0.0.0.0").split(".").map(Number)];
    const parts = [header, question.subarray(12, at + 5), ...(address && asksA ? [Buffer.from(record)] : [])];
    server.send(Buffer.concat(parts), from.port, from.address);
  });
  await new Promise<void>((resolve) => server.bind(0, "127.0.0.1", resolve));
  return { port: server.address().port, close: () => server.close() };
}

function ip(...words: string[]): void {
  const { status, stderr } = spawnSync("ip", words, { encoding: "utf8" });
  assert.equal(status, 0, `ip ${words.join(" ")}: ${stderr}`);
}

suite("egress policy of real machines", { skip: realMachinesMissing() ?? packagesMissing(PACKAGES) }, () => {
  const name = `hgt${randomBytes(4).toString("hex")}`;
  const ends: (() => unknown)[] = [];
  let box: DebianMachines;
  let machine: DebianMachine;
  let env: Record<string, string>;

  before(async () => {
    const names = await nameServer({
      "api.example.test": PUBLIC,
      "other.example.test": PUBLIC,
      "rebound.example.test": METADATA,
    });
    ends.push(() => names.close());
    ends.push(() => spawnSync("ip", ["netns", "del", name]));
    ip("netns", "add", name);
    ip("link", "add", name, "type", "veth", "peer", "name", "eth0", "netns", name);
    ends.push(() => spawnSync("ip", ["link", "del", name]));
    ip("addr", "add", `${HOST}/30`, "dev", name);
    for (const address of [`${PUBLIC6.slice(0, -1)}1/64`, `${ULA.slice(0, -1)}1/64`])
      ip("-6", "addr", "add", address, "dev", name, "nodad");
    ip("link", "set", name, "up");
    for (const address of [`${PUBLIC}/30`, `${PRIVATE}/32`, `${METADATA}/32`])
      ip("-n", name, "addr", "add", address, "dev", "eth0");
    for (const address of [`${PUBLIC6}/64`, `${ULA}/64`])
      ip("-n", name, "-6", "addr", "add", address, "dev", "eth0", "nodad");
    ip("-n", name, "link", "set", "eth0", "up");
    for (const address of [PRIVATE, METADATA]) ip("route", "add", `${address}/32`, "via", PUBLIC);
    writeFileSync(`/proc/sys/net/ipv4/conf/${name}/forwarding`, "1");
    const server = new Child("ip", ["netns", "exec", name, "python3", "-c", WORLD]);
    ends.push(() => server.kill());
    await server.until(/^ready/);
    env = { HANGAR_DNS_SERVERS: `127.0.0.1:${names.port}` };
    box = await debianMachines(PACKAGES, env);
    for (const app_name of ["web", "calm"])
      await box.platform.ask("POST /v1/apps", { body: { app_name, org_slug: "personal" } });
    machine = await box.machine("web");
  });

  after(async () => {
    await box?.close();
    for (const end of ends.reverse()) await end();
  });

  const tcp = (host: string, port = 80, from = machine) => box.python(from, TCP, host, String(port));
  const named = (host: string, port = 80) => box.python(machine, NAMED, host, String(port));
  const set = async (body: object, app = "web") => {
    const { status, text } = await box.platform.ask(`PUT /v1/apps/${app}/egress`, { body });
    assert.equal(status, 200, text);
  };
  const reaches = (what: string, host: string, port = 80) =>
    until(what, async () => (await tcp(host, port)) === "hello");
  const closed = (what: string, host: string, port = 80) =>
    until(what, async () => (await tcp(host, port)).startsWith("closed at once"));
  const sample = async (metric: string): Promise<number> => {
    const query = `/prometheus/personal/api/v1/query?query=${encodeURIComponent(`sum(${metric}{app="web"})`)}`;
    const { body } = await box.platform.ask(`GET ${query}`);
    return Number(body?.data?.result?.[0]?.value?.[1] ?? 0);
  };

  test("by default machines reach public addresses, and neither link-local nor private ones", async () => {
    assert.equal(await tcp(PUBLIC), "hello");
    assert.equal(await box.python(machine, UDP, PUBLIC, "ping"), "pong");
    for (const address of [METADATA, PRIVATE]) {
      assert.match(await tcp(address), /^closed at once/);
      assert.match(await box.python(machine, UDP, address, "ping"), /^closed/);
    }
    // The host itself, under any of its addresses.
    assert.match(await box.python(machine, TCP, HOST, new URL(box.platform.base_url).port), /^closed/);
    await until("what was denied is counted", async () => (await sample("svc_instance_egress_denied_count")) >= 4);
  });

  test("the same policy applies over IPv6", async (t) => {
    const bridge = readdirSync("/sys/class/net").find((one) =>
      one.startsWith(`${devicePrefix(nodeIdOf(box.data_dir))}b`),
    );
    const passes = (device: string): string => `/proc/sys/net/ipv6/conf/${device}/force_forwarding`;
    try {
      for (const device of [bridge ?? "", name]) writeFileSync(passes(device), "1");
    } catch {
      return t.skip("this kernel forwards IPv6 for all devices or for none");
    }
    assert.equal(await tcp(PUBLIC6), "hello");
    assert.match(await tcp(ULA), /^closed at once/);
    await set({ mode: "list", allow: [`[${PUBLIC6}]:80/tcp`] });
    await closed("another port is closed", PUBLIC6, 81);
    assert.equal(await tcp(PUBLIC6), "hello");
    await set({ mode: "all" });
  });

  test("mode none blocks all but the own network, DNS and the machine API, and cuts open connections", async () => {
    const exec = ["/usr/bin/python3", "-c", HOLDS, PUBLIC];
    const holder = await box.machine("web", { init: { exec } });
    const said = async (): Promise<string> =>
      (await box.platform.ask(`GET /v1/apps/web/machines/${holder.id}/logs`)).text;
    await until("it is connected", async () => (await said()).includes("hello"));
    await set({ mode: "none" });
    await closed("the outside is closed", PUBLIC);
    await until("the open connection is cut", async () => (await said()).includes("ended"));
    assert.match(await named("api.example.test"), /^closed/);
    const gateway = gatewayAddress(machine.private_ip);
    assert.doesNotMatch(await tcp(gateway, 4280), /No route|unreachable|refused/);
    const resolve = `import socket, sys; print(socket.getaddrinfo(sys.argv[1], 80)[0][4][0])`;
    assert.match(await box.python(machine, resolve, `${holder.id}.vm.web.internal`), /^fdaa:/);
    // Another app of the same organization keeps its own.
    const calm = await box.machine("calm");
    assert.equal(await tcp(PUBLIC, 80, calm), "hello");
    await set({ mode: "all" });
    await reaches("it is open again", PUBLIC);
  });

  test("a list opens its ranges and ports at once, also for machines that start later", async () => {
    await set({ mode: "list", allow: [`${PUBLIC}/32:81`, "203.0.113.0/24"] });
    await reaches("the listed port is open", PUBLIC, 81);
    assert.match(await tcp(PUBLIC, 80), /^closed at once/);
    const later = await box.machine("web");
    assert.equal(await tcp(PUBLIC, 81, later), "hello");
    assert.match(await tcp(PUBLIC, 80, later), /^closed at once/);
    await set({ mode: "list", allow: [`${PUBLIC}:80/tcp`, `198.51.100.0/24:80-80`] });
    await reaches("the new list holds", PUBLIC, 80);
    assert.match(await tcp(PUBLIC, 81), /^closed at once/);
  });

  test("a name opens its addresses when it is resolved; one that resolves to a blocked range opens nothing", async () => {
    await set({ mode: "list", allow: ["api.example.test:80", "rebound.example.test"] });
    await closed("the address is closed before its name is asked for", PUBLIC);
    await until("the name is open", async () => (await named("api.example.test")) === "hello");
    assert.equal(await tcp(PUBLIC), "hello");
    assert.match(await tcp(PUBLIC, 81), /^closed at once/);
    assert.match(await named("other.example.test"), /^closed/);
    assert.match(await named("rebound.example.test"), /^closed/);
    assert.match(await tcp(METADATA), /^closed at once/);
  });

  test("the policy survives a restart of the platform and a resume", async (t) => {
    await set({ mode: "list", allow: [`${PUBLIC}:81`] });
    await closed("the list holds", PUBLIC);
    await box.restart();
    assert.match(await tcp(PUBLIC), /^closed at once/);
    assert.equal(await tcp(PUBLIC, 81), "hello");
    const state = async (): Promise<string> =>
      (await box.platform.ask(`GET /v1/apps/web/machines/${machine.id}/wait?state=settled&timeout=60`)).body.state;
    await box.platform.ask(`POST /v1/apps/web/machines/${machine.id}/suspend`);
    if ((await state()) !== "suspended") return t.skip("this box cannot suspend");
    await set({ mode: "none" });
    await box.platform.ask(`POST /v1/apps/web/machines/${machine.id}/start`);
    assert.equal(await state(), "started");
    assert.match(await tcp(PUBLIC, 81), /^closed at once/, "the policy changed while it was suspended");
    await set({ mode: "all" });
    await reaches("it is open again", PUBLIC);
  });

  test("invalid entries and blocked ranges are refused with what is allowed", async () => {
    const refused = async (body: object): Promise<string> => {
      const { status, text } = await box.platform.ask("PUT /v1/apps/web/egress", { body });
      assert.equal(status, 400, text);
      return text;
    };
    assert.match(await refused({ mode: "list", allow: ["what is this"] }), /body\.allow\.0.*cannot be read/);
    const metadata = await refused({ mode: "list", allow: ["8.8.8.8", "169.254.169.254:80"] });
    assert.match(metadata, /body\.allow\.1.*169\.254\.0\.0\/16.*HANGAR_EGRESS_ALLOW/);
    assert.match(await refused({ mode: "list" }), /mode is list/);
    assert.match(await refused({ mode: "none", allow: ["8.8.8.8"] }), /mode is none/);
    const many = Array.from({ length: 65 }, (_, n) => `192.0.2.${n}`);
    await refused({ mode: "list", allow: many });
  });

  test("connections of one machine are limited, and others still connect", async () => {
    const { connections_per_machine: bound } = NETWORK_LIMITS;
    assert.match(await box.python(machine, FLOOD, PUBLIC, String(bound + 2000)), /^closed/);
    const calm = await box.machine("calm");
    const arrived = Number(await box.python(calm, UDP, PUBLIC, "how many"));
    assert.ok(arrived > bound / 2 && arrived < bound + 1000, `${arrived} of more than ${bound + 2000} passed`);
    assert.equal(await tcp(PUBLIC, 80, calm), "hello");
    await until(
      "what was refused is counted",
      async () => (await sample("svc_instance_connections_refused_count")) >= 2000,
    );
  });

  test("the operator can open a range for all machines", async () => {
    await box.restart({ HANGAR_EGRESS_ALLOW: `${PRIVATE}/32` });
    const calm = await box.machine("calm");
    assert.equal(await tcp(PRIVATE, 80, calm), "hello");
    assert.match(await tcp(METADATA, 80, calm), /^closed at once/);
  });
});
