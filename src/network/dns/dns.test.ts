import assert from "node:assert/strict";
import { Resolver } from "node:dns/promises";
import { once } from "node:events";
import { readdirSync } from "node:fs";
import { type AddressInfo, connect, createServer } from "node:net";
import { buffer } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { LocalBus } from "#core/bus.ts";
import { silentLog } from "#core/log.ts";
import { aMachine } from "#machines/fixtures.ts";
import { type MachineUpdate, topics } from "#machines/lifecycle/writer.ts";
import type { MachineStore } from "#machines/store.ts";
import type { Machine } from "#machines/types.ts";
import { random, runs, seed } from "../../../test/support.ts";
import { Directory } from "../directory.ts";
import { readQuestion } from "./message.ts";
import { DnsServer } from "./server.ts";

const machine = (id: string, change: Partial<Machine> = {}): Machine =>
  aMachine({ id, state: "started", private_ip: `fdaa:1:2:1:0:0:0:${id}`, ...change });

/** On a port that is free for datagrams; another program may have the same for TCP, then on the next. */
async function listening(server: DnsServer): Promise<number> {
  for (;;) {
    try {
      return await server.listen("127.0.0.1", "fdaa:1:2::3", 0);
    } catch (thrown) {
      if ((thrown as NodeJS.ErrnoException).code !== "EADDRINUSE") throw thrown;
    }
  }
}

async function aServer(
  t: TestContext,
  machines: readonly Machine[],
  { loadApp = async () => {}, upstreams = [] }: Partial<ConstructorParameters<typeof DnsServer>[0]> = {},
): Promise<{ resolver: Resolver; bus: LocalBus<MachineUpdate>; server: DnsServer; port: number }> {
  const bus = new LocalBus<MachineUpdate>({ onError() {}, onFull: () => assert.fail() });
  const store = { aliveAnywhere: async () => machines } as unknown as MachineStore;
  const directory = new Directory({ store, bus });
  await directory.start();
  const server = new DnsServer({ directory, host_ids: ["0001"], loadApp, log: silentLog, upstreams });
  const port = await listening(server);
  t.after(() => {
    server.close();
    directory.close();
  });
  const resolver = new Resolver({ timeout: 2000, tries: 1 });
  resolver.setServers([`127.0.0.1:${port}`]);
  return { resolver, bus, server, port };
}

/** A query for addresses, as it is sent over TCP. */
function query(id: number, name: string): Buffer {
  const labels = name.split(".").map((label) => Buffer.concat([Buffer.from([label.length]), Buffer.from(label)]));
  const head = Buffer.from([0, id, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0]);
  const message = Buffer.concat([head, ...labels, Buffer.from([0, 0, 28, 0, 1])]);
  return Buffer.concat([Buffer.from([message.length >> 8, message.length & 255]), message]);
}

suite("DNS names of the private network", () => {
  test("A queries are answered with the IPv4 addresses of machines on the caller's host", async (t) => {
    const { resolver } = await aServer(t, [
      machine("1", { host_id: "0001", private_ipv4: "100.96.0.1" }),
      machine("2", { host_id: "0002", private_ipv4: "100.96.0.2" }),
      machine("3", { host_id: "0001", region: "ams" }),
    ]);
    assert.deepEqual(await resolver.resolve4("web.internal"), ["100.96.0.1"]);
    assert.deepEqual(await resolver.resolve4("1.vm.web.internal"), ["100.96.0.1"]);
    // The name is there, and has no such address for this caller.
    await assert.rejects(resolver.resolve4("2.vm.web.internal"), { code: "ENODATA" });
    await assert.rejects(resolver.resolve4("ams.web.internal"), { code: "ENODATA" });
    await assert.rejects(resolver.resolve4("_api.internal"), { code: "ENODATA" });
    assert.equal((await resolver.resolve6("web.internal")).length, 3);
  });

  test("machines are found by app, region, id, process group and metadata", async (t) => {
    const { resolver } = await aServer(t, [
      machine("1"),
      machine("2", { region: "ams", config: { image: "x", metadata: { fly_process_group: "worker", role: "db" } } }),
      machine("3", { config: { image: "x", dns: { skip_registration: true } } }),
      machine("4", { app_name: "other" }),
      machine("5", { state: "suspended" }),
    ]);
    const six = async (name: string): Promise<string[]> => (await resolver.resolve6(name)).sort();
    assert.deepEqual(await six("web.internal"), ["fdaa:1:2:1::1", "fdaa:1:2:1::2"]);
    assert.deepEqual(await six("WEB.internal"), ["fdaa:1:2:1::1", "fdaa:1:2:1::2"]);
    assert.deepEqual(await six("ams.web.internal"), ["fdaa:1:2:1::2"]);
    assert.deepEqual(await six("1.vm.web.internal"), ["fdaa:1:2:1::1"]);
    assert.deepEqual(await six("worker.process.web.internal"), ["fdaa:1:2:1::2"]);
    assert.deepEqual(await six("db.role.kv._metadata.web.internal"), ["fdaa:1:2:1::2"]);
    assert.equal((await six("top1.nearest.of.web.internal")).length, 1);
    await assert.rejects(six("3.vm.web.internal"), { code: "ENOTFOUND" });
    await assert.rejects(six("nobody.internal"), { code: "ENOTFOUND" });
    await assert.rejects(resolver.resolve4("web.internal"), { code: "ENODATA" });
  });

  test("TXT queries list machines, regions and apps", async (t) => {
    const { resolver } = await aServer(t, [
      machine("1"),
      machine("2", { region: "ams" }),
      machine("4", { app_name: "db" }),
    ]);
    const text = async (name: string): Promise<string> => (await resolver.resolveTxt(name)).flat().join("");
    assert.equal(await text("vms.web.internal"), "1 local,2 ams");
    assert.equal(await text("regions.web.internal"), "ams,local");
    assert.equal(await text("_apps.internal"), "db,web");
    assert.deepEqual(await resolver.resolve6("_api.internal"), ["fdaa:1:2::3"]);
    assert.match(await text("_instances.internal"), /instance=1,app=web,ip=fdaa:1:2:1:0:0:0:1,region=local/);
  });

  test("a machine that starts or stops is seen at once, and one of another network never", async (t) => {
    const { resolver, bus } = await aServer(t, [machine("9", { private_ip: "fdaa:9:9:1::9" })]);
    await assert.rejects(resolver.resolve6("web.internal"), { code: "ENOTFOUND" });
    bus.publish(topics.every, { machine: machine("1"), events: [] });
    assert.deepEqual(await resolver.resolve6("web.internal"), ["fdaa:1:2:1::1"]);
    bus.publish(topics.every, { machine: machine("1", { state: "stopped" }), events: [] });
    await assert.rejects(resolver.resolve6("web.internal"), { code: "ENOTFOUND" });
  });

  test("DNS queries from outside the network get no response", async (t) => {
    const { server } = await aServer(t, [machine("1")]);
    const port = await server.listen("127.0.0.2", "fdaa:1:2::3", 0);
    const outsider = new Resolver({ timeout: 300, tries: 1 });
    outsider.setLocalAddress("127.0.0.1");
    outsider.setServers([`127.0.0.2:${port}`]);
    await assert.rejects(outsider.resolve6("web.internal"), { code: "ETIMEOUT" });
    const socket = connect({ port, host: "127.0.0.2", localAddress: "127.0.0.1" });
    socket.write(query(1, "web.internal"));
    assert.equal((await buffer(socket).catch(() => Buffer.alloc(0))).length, 0);
  });

  test("a response too long for a datagram is sent over TCP", async (t) => {
    const many = Array.from({ length: 200 }, (_, i) => machine((i + 1).toString(16)));
    const { resolver } = await aServer(t, many);
    assert.equal((await resolver.resolve6("web.internal")).length, 200);
  });

  test("many DNS queries on one TCP connection, split anywhere, are answered in order", async (t) => {
    const { port } = await aServer(t, [machine("1"), machine("2", { app_name: "other" })]);
    const names = ["web.internal", "other.internal", "nobody.internal", "web.internal"];
    const sent = Buffer.concat(names.map((name, id) => query(id, name)));
    for (const size of [1, 7, sent.length]) {
      const socket = connect(port, "127.0.0.1");
      for (let at = 0; at < sent.length; at += size) socket.write(sent.subarray(at, at + size));
      // No more queries are sent; those already sent are still answered.
      socket.end();
      const got = await buffer(socket);
      const answers: [number, number][] = [];
      for (let at = 0; at < got.length; at += 2 + got.readUInt16BE(at)) {
        answers.push([got.readUInt16BE(at + 2), got.readUInt16BE(at + 8)]);
      }
      assert.deepEqual(
        answers,
        [1, 1, 0, 1].map((count, id) => [id, count]),
        `in pieces of ${size}`,
      );
    }
  });

  test("open TCP connections are closed with the server", async (t) => {
    const { port, server } = await aServer(t, [machine("1")]);
    const socket = connect(port, "127.0.0.1");
    socket.write(query(1, "web.internal"));
    await once(socket, "data");
    const ended = once(socket, "close");
    server.close();
    await ended;
  });

  test("a query for an external name over TCP is forwarded over TCP, with its long response", async (t) => {
    const outside = createServer((socket) => {
      socket.once("data", (question: Buffer) => {
        const long = Buffer.alloc(5000, question.subarray(2, 4));
        socket.end(Buffer.concat([Buffer.from([5000 >> 8, 5000 & 255]), long]));
      });
    }).listen(0, "127.0.0.1");
    await once(outside, "listening");
    t.after(() => outside.close());
    const { port } = outside.address() as AddressInfo;
    const own = await aServer(t, [], { upstreams: [{ host: "127.0.0.1", port }] });
    const socket = connect(own.port, "127.0.0.1");
    socket.end(query(7, "web.example"));
    const got = await buffer(socket);
    assert.deepEqual([got.length, got.readUInt16BE(2)], [5002, 7]);
  });

  test("an address that does not exist yet is retried without cost", async () => {
    const directory = new Directory({
      store: {} as MachineStore,
      bus: new LocalBus<MachineUpdate>({ onError() {}, onFull: () => assert.fail() }),
    });
    const server = new DnsServer({ directory, host_ids: [], loadApp: async () => {}, log: silentLog, upstreams: [] });
    const open = (): number => readdirSync("/proc/self/fd").length;
    const before = open();
    for (let i = 0; i < 20; i++) await assert.rejects(server.listen("192.0.2.1", "fdaa:1:2::3", 0));
    await new Promise((resolve) => setImmediate(resolve));
    assert.ok(open() < before + 20, `${before} files were open, now ${open()}`);
  });

  test("a query pending at close gets no response and throws nothing", async (t) => {
    const query = Promise.withResolvers<void>();
    const loaded = Promise.withResolvers<void>();
    const { resolver, server } = await aServer(t, [machine("1")], {
      async loadApp() {
        query.resolve();
        await loaded.promise;
      },
    });
    const answer = assert.rejects(resolver.resolveTxt("all.vms.web.internal"), { code: "ECANCELLED" });
    await query.promise;
    server.close();
    loaded.resolve();
    for (let n = 0; n < 5; n++) await new Promise((resolve) => setImmediate(resolve));
    resolver.cancel();
    await answer;
  });

  test("random bytes are parsed or ignored as DNS queries", (t) => {
    const choose = random(seed(t));
    for (let i = 0; i < runs(5000); i++) {
      const bytes = Buffer.from(Array.from({ length: Math.floor(choose() * 60) }, () => Math.floor(choose() * 256)));
      if (bytes.length > 5) bytes.set([0, 0, 0, 1], 2);
      readQuestion(bytes);
    }
  });
});
