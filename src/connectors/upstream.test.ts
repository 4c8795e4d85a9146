/** Private addresses are refused (G3), even when DNS answers change (G4). */
import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { suite, test } from "node:test";
import { isPublicAddress, type Lookup, literalProblem } from "#core/public-addresses.ts";
import { runs } from "../../test/support.ts";
import { baseUrl } from "./custom.ts";
import { Upstream } from "./upstream.ts";

/** Spellings of private addresses that URL accepts. */
const INSIDE =
  `127.0.0.1 127.1 127.0.1 0177.0.0.1 0x7f.0.0.1 0x7f000001 2130706433 017700000001 127.0.0.1. ①②⑦.⓪.⓪.① 127。0。0。1
   127.255.255.255 0.0.0.0 0 10.0.0.1 10.255.255.255 172.16.0.1 172.31.255.255 192.168.1.1 169.254.169.254 169.254.0.1
   0xa9fea9fe 2852039166 100.64.0.1 100.127.255.255 198.18.0.1 198.19.255.255 192.0.0.1 192.0.2.1 198.51.100.1 203.0.113.1
   224.0.0.1 239.255.255.255 240.0.0.1 255.255.255.255 [::1] [::] [0:0:0:0:0:0:0:1] [::127.0.0.1] [::ffff:127.0.0.1]
   [::ffff:7f00:1] [::ffff:10.0.0.1] [::ffff:169.254.169.254] [0:0:0:0:0:ffff:7f00:1] [::ffff:0:127.0.0.1]
   [64:ff9b::127.0.0.1] [64:ff9b::a9fe:a9fe] [64:ff9b:1::1] [2002:7f00:1::] [2002:a9fe:a9fe::1] [2001::1] [2001:0:7f00:1::]
   [2001:db8::1] [fc00::1] [fd00::1] [fdaa:0:1::3] [fe80::1] [feb0::1] [fec0::1] [ff02::1] [100::1] [3fff::1] [5f00::1]`.split(
    /\s+/,
  );

suite("upstream addresses of connectors", () => {
  test(`${INSIDE.length} spellings of private addresses are refused, public ones are not (G3)`, () => {
    assert.ok(INSIDE.length >= 60);
    const missed = INSIDE.filter((host) => !literalProblem(new URL(baseUrl(`http://${host}/x`, "url")).hostname));
    assert.deepEqual(missed, []);
    for (const address of ["1.1.1.1", "8.8.8.8", "172.32.0.1", "100.128.0.1", "2606:4700::1111", "2a00:1450::1"])
      assert.ok(isPublicAddress(address), address);
    for (const text of ["", "localhost", "1.1.1", "::g"]) assert.ok(!isPublicAddress(text), text);
  });

  test("a name that changes to a private address between two lookups is never connected to (G4)", async (t) => {
    let connects = 0;
    const server = createServer((_request, response) => void response.end("machine"));
    server.on("connection", () => connects++);
    await once(server.listen(0, "127.0.0.1"), "listening");
    const { port } = server.address() as AddressInfo;
    t.after(() => server.close());
    let lookups = 0;
    // The public address is unreachable here; the test checks that the private one is never used.
    const lookup: Lookup = (_host, _options, done) => {
      lookups++;
      const inside = { address: "127.0.0.1", family: 4 };
      done(null, lookups % 3 === 0 ? [{ address: "192.0.0.8", family: 4 }, inside] : [inside]);
    };
    const upstream = new Upstream({ allow_private: false, lookup });
    t.after(() => upstream.close());
    const outgoing = { origin: `http://rebound.example:${port}`, path: "/", headers: {}, secrets: [] };
    for (let i = 0; i < runs(100); i++) {
      const passing = { method: "GET", outgoing, body: undefined, signal: new AbortController().signal };
      const begin = () => assert.fail("there is an answer");
      await assert.rejects(upstream.pass(passing, true, { begin }), { code: "address_refused" });
    }
    assert.equal(lookups, runs(100));
    assert.equal(connects, 0);
  });
});
