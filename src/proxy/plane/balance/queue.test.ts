import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { aBackend, aPlane, aPlaneInTime, aTarget } from "../../fixtures.ts";
import { PROXY_LIMITS } from "../../limits.ts";

const REQUEST = "GET / HTTP/1.1\r\nhost: web.localhost\r\nconnection: close\r\n\r\n";

/** A machine that takes one request at a time and answers the first when `answer` is called, with a movable clock. */
async function busy(t: TestContext) {
  const listener = await aPlaneInTime(t);
  const taken = Promise.withResolvers<() => void>();
  let requests = 0;
  const { port } = await aBackend(t, (_, response) => {
    if (requests++ === 0) taken.resolve(() => response.end("served"));
    else response.end("served");
  });
  await listener.serve({ targets: [aTarget(port, { soft: 1, hard: 1 })] });
  const first = listener.raw(REQUEST);
  const answer = await taken.promise;
  return { listener, first, answer, later: listener.later };
}

suite("requests that wait for a machine", () => {
  test("a queued request is served when there is capacity", async (t) => {
    const { listener, first, answer } = await busy(t);
    const second = listener.raw(REQUEST);
    answer();
    assert.match(await first, /^HTTP\/1\.1 200 .*served/s);
    assert.match(await second, /^HTTP\/1\.1 200 .*served/s);
  });

  test("equally loaded machines share the requests, and a fuller one gets fewer", async (t) => {
    const listener = await aPlane(t);
    const held: [machine: number, answer: () => void][] = [];
    const machines = await Promise.all(
      [0, 1].map((n) => aBackend(t, (_, response) => void held.push([n, () => response.end("served")]))),
    );
    // Half as much is enough for the second.
    await listener.serve({
      targets: machines.map(({ port }, n) => aTarget(port, { slot: n + 1, soft: n === 0 ? 8 : 4 })),
    });
    const answers = Array.from({ length: 12 }, () => listener.raw(REQUEST));
    while (held.length < 12) await new Promise((resolve) => setImmediate(resolve));
    assert.equal(held.filter(([machine]) => machine === 0).length, 8);
    for (const [, answer] of held) answer();
    for (const answer of await Promise.all(answers)) assert.match(answer, /^HTTP\/1\.1 200 /);
  });

  test("a request that waited queue_ms gets 503 with the reason", async (t) => {
    const { listener, later } = await busy(t);
    const second = listener.raw(REQUEST);
    await untilWaiting(listener.slots, 1);
    later(PROXY_LIMITS.queue_ms + 1);
    assert.match(await second, /^HTTP\/1\.1 503 .*retry-after: 1.*at their hard limit for 60 s/s);
  });

  test("a full queue answers 503 with the limit's name", async (t) => {
    const { listener } = await busy(t);
    for (let i = 0; i < PROXY_LIMITS.queue_length; i++) void listener.raw(REQUEST);
    await untilWaiting(listener.slots, PROXY_LIMITS.queue_length);
    assert.match(await listener.raw(REQUEST), /^HTTP\/1\.1 503 .*queue_full.*limit queue_length/s);
  });
});

async function untilWaiting(slots: { waiting(slot: number): number }, count: number): Promise<void> {
  const waiting = (): number => Math.max(...Array.from({ length: 1000 }, (_, slot) => slots.waiting(slot)));
  while (waiting() < count) await new Promise((resolve) => setImmediate(resolve));
}
