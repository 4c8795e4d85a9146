import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { type ListenSocket, unreachableReason } from "./listening.ts";

const tcp = (...addresses: string[]): ListenSocket[] => addresses.map((address) => ({ proto: "tcp", address }));

suite("why a port of a machine is unreachable", () => {
  const reason = (sockets: readonly ListenSocket[], port = 8000): string | undefined =>
    unreachableReason(sockets, { proto: "tcp", port });

  test("a port that is open beyond loopback has no reason, in either address family", () => {
    const open = ["0.0.0.0:8000", "[::]:8000", "100.96.1.2:8000", "[fdaa:1:2:1::3]:8000"];
    for (const address of open) assert.equal(reason(tcp("127.0.0.1:8000", address)), undefined, address);
  });

  test("a program that listens on loopback only is named with its address and the fix", () => {
    for (const address of ["127.0.0.1:8000", "127.0.1.1:8000", "[::1]:8000"])
      assert.equal(
        reason(tcp(address, "0.0.0.0:80")),
        `the program listens on ${address} only; let it listen on 0.0.0.0:8000 or [::]:8000`,
      );
    assert.match(reason(tcp("[::1]:8000", "127.0.0.1:8000")) ?? "", /on \[::1\]:8000 and 127\.0\.0\.1:8000 only/);
  });

  test("a port without a listener is reported with the ports that are open", () => {
    assert.equal(
      reason(tcp("[::]:3000", "0.0.0.0:80", "0.0.0.0:80")),
      "nothing listens on port 8000; the machine listens on 0.0.0.0:80 and [::]:3000",
    );
    assert.match(reason(tcp("0.0.0.0:1", "0.0.0.0:2", "0.0.0.0:3", "0.0.0.0:4", "0.0.0.0:5")) ?? "", /:4 and 1 more$/);
    assert.equal(reason([]), "nothing listens on port 8000, nor on any other tcp port");
  });

  test("UDP and TCP ports are told apart", () => {
    assert.match(reason([{ proto: "udp", address: "0.0.0.0:8000" }]) ?? "", /nor on any other tcp port/);
    assert.equal(unreachableReason([{ proto: "udp", address: "0.0.0.0:53" }], { proto: "udp", port: 53 }), undefined);
  });
});
