/** Terms only increase: no node leads or follows in an earlier one. */
import assert from "node:assert/strict";
import { suite } from "node:test";
import { story, until } from "./fixtures.ts";

suite("terms of a cluster", () => {
  story("a node does not become primary of a term that is over", async (scene) => {
    const { node } = await scene.start(scene.dir(), { kind: "primary" });
    await node.becomePrimary(5);
    await assert.rejects(node.becomePrimary(3), /term 3 is over, 5 was seen/);
    assert.deepEqual(node.role, { kind: "none" }, "and not any more of the last one either");
    await node.becomePrimary(6);
    assert.deepEqual(node.role, { kind: "primary", term: 6 });
  });

  story("a replica does not follow a primary of a term that is over", async (scene) => {
    const primary = await scene.start(scene.dir(), { kind: "primary" });
    const ahead = await scene.start(scene.dir(), { kind: "primary" });
    ahead.node.claim(5);
    await ahead.node.becomeReplica(primary.url);
    await until("it was refused", () => scene.said.some((line) => /term 1 is over, 5 was seen/.test(line)));
    assert.equal(ahead.node.events.status.hostname, undefined);
    assert.equal(primary.node.streams.replicas.length, 0);
  });
});
