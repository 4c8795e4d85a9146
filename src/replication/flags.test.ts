import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { ackIn, nodeAddress } from "./flags.ts";

suite("options of a replication node", () => {
  test("a node address must be an HTTP URL, and an invalid one is named", () => {
    assert.equal(nodeAddress("--join", "http://10.0.0.1:20202/"), "http://10.0.0.1:20202");
    assert.equal(nodeAddress("--join", "http://[::1]:20202"), "http://[::1]:20202");
    for (const text of ["", "nonsense", "localhost:20202", "10.0.0.1:20202", "https://10.0.0.1"])
      assert.throws(() => nodeAddress("--join", text), {
        message: `--join is a node's address such as http://127.0.0.1:20202, not ${JSON.stringify(text)}`,
      });
  });
});

test("--ack sets how many replicas must have a transaction, and refuses impossible values", () => {
  assert.deepEqual(ackIn({}).ack, { name: "none", replicas: 0 });
  assert.deepEqual(ackIn({ ack: "one" }).ack, { name: "one", replicas: 1 });
  for (const [size, replicas] of [
    ["2", 1],
    ["3", 1],
    ["4", 2],
    ["5", 2],
  ] as const) {
    assert.deepEqual(ackIn({ ack: "quorum", "cluster-size": size }).ack, { name: "quorum", replicas });
  }
  assert.equal(ackIn({ ack: "one", "max-unacked": "5" }).max_unacked, 5);
  assert.throws(() => ackIn({ ack: "two" }), /none, one or quorum/);
  assert.throws(() => ackIn({ ack: "quorum" }), /needs --cluster-size/);
  assert.throws(() => ackIn({ ack: "one", "cluster-size": "3" }), /--cluster-size/);
  assert.throws(() => ackIn({ ack: "quorum", "cluster-size": "1" }), /from 2 to 99/);
  assert.throws(() => ackIn({ "max-unacked": "5" }), /needs --ack/);
  assert.throws(() => ackIn({ ack: "one", "max-unacked": "0" }), /from 1/);
});
