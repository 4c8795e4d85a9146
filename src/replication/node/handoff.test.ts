/** A primary hands over to a replica that has everything on its disk, not to one to which it has only been sent. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { suite } from "node:test";
import { type Scene, story, until } from "./fixtures.ts";
import { FRAME, FrameReader } from "./wire.ts";

const REPLICA = "0123456789abcdef";

/** The kinds of frames that a replica gets which says nothing of itself. */
async function silentReplica(scene: Scene, url: string): Promise<Set<number>> {
  const asked = request(`${url}/stream`, { method: "POST" });
  asked.on("error", () => undefined);
  scene.later(() => asked.destroy());
  asked.end(JSON.stringify({ node: REPLICA, hostname: "replica:1", term: 0, databases: {} }));
  const [answer] = (await once(asked, "response")) as [IncomingMessage];
  const reader = new FrameReader();
  const seen = new Set<number>();
  answer.on("data", (bytes: Buffer) => {
    reader.push(bytes);
    for (const { type } of reader.frames()) seen.add(type);
  });
  return seen;
}

suite("a handover", () => {
  story("waits until the replica has acknowledged all of it", async (scene) => {
    const dir = scene.dir();
    const { node, url } = await scene.start(dir, { kind: "primary" });
    const app = await scene.app(dir);
    await until("it is open", () => node.look("db") && node.reached("db") > 0);
    const seen = await silentReplica(scene, url);
    await app.write();
    await until("it has been sent everything", () => node.streams.hasAll(REPLICA));
    const handed = node.handOff(REPLICA);
    await until("it is asked what it has", () => seen.has(FRAME.sync));
    assert.ok(!seen.has(FRAME.handoff), "it has said nothing yet");
    const databases = node.directory.positions();
    const body = JSON.stringify({ node: REPLICA, term: node.term, databases });
    assert.equal((await fetch(`${url}/ack`, { method: "POST", body })).status, 200);
    await handed;
    await until("it is told to take over", () => seen.has(FRAME.handoff));
  });
});
