/** Equally loaded machines take turns (round robin), for every client and in every worker. */
import assert from "node:assert/strict";
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { aBackend, anAppTable, aPlane, aTarget, OPTIONS } from "../../fixtures.ts";
import { Slots } from "../../slots.ts";
import type { Target } from "../../table.ts";
import { EdgeCounters, TargetCounters } from "../counters.ts";
import type { TargetConstraint } from "./pending-request.ts";
import { Route } from "./route.ts";
import { TargetState } from "./target.ts";

const REQUESTS = 40;

/** How many requests each of the servers gets, one request after the other. */
async function shares(t: TestContext, targets: readonly Partial<Target>[], agent: Agent): Promise<number[]> {
  const listener = await aPlane(t);
  const counts = targets.map(() => 0);
  const backends = await Promise.all(
    targets.map((_, n) =>
      aBackend(t, (_request, response) => {
        counts[n] = (counts[n] ?? 0) + 1;
        response.end("served");
      }),
    ),
  );
  await listener.serve({ targets: backends.map(({ port }, n) => aTarget(port, { slot: n + 1, ...targets[n] })) });
  for (let i = 0; i < REQUESTS; i++) {
    const sent = request({ port: listener.port, host: "127.0.0.1", headers: { host: "web.localhost" }, agent });
    sent.end();
    const answer = await new Promise<NodeJS.ReadableStream>((resolve) => sent.once("response", resolve));
    assert.equal(await text(answer), "served");
  }
  agent.destroy();
  return counts;
}

const CLIENTS = {
  "a connection each": () => new Agent({ keepAlive: false }),
  "one kept-alive connection": () => new Agent({ keepAlive: true, maxSockets: 1 }),
};

suite("load balancing of sequential requests", () => {
  for (const mode of ["requests", "connections"] as const)
    for (const [client, agent] of Object.entries(CLIENTS)) {
      test(`two machines get half each (${mode}, ${client})`, async (t) => {
        assert.deepEqual(await shares(t, [{ mode }, { mode }], agent()), [20, 20]);
      });
    }

  test("idle machines with different soft limits get the same number of requests", async (t) => {
    const counts = await shares(
      t,
      [{ soft: 1 }, { soft: 20 }, { soft: 7, hard: 7 }, {}],
      CLIENTS["a connection each"](),
    );
    assert.deepEqual(counts, [10, 10, 10, 10]);
  });
});

/**
 * One service in several workers, without sockets; returns functions by which a worker picks and occupies a machine.
 */
function workers(count: number, names: readonly string[], slots = new Slots()) {
  const targets = names.map((machine_id, slot) => aTarget(1, { machine_id, slot }));
  const port = { protocol: "tcp", start: 80, end: 80, options: OPTIONS, targets, startable: [], empty: "" } as const;
  const routes = Array.from({ length: count }, (_, worker) => {
    const floor = { slots, worker, now: () => 0, shared_s: () => 0, unreachable: () => {} };
    const states = targets.map((target) => new TargetState(target, floor, new TargetCounters("o1", {})));
    const counters = new EdgeCounters("o1", {});
    const rest = { counters, statics: undefined as never, floor, requestStart: () => {} };
    return new Route({
      app: anAppTable("web", { ...port, startable: [] }),
      table: { ...port, startable: [] },
      targets: states,
      ...rest,
    });
  });
  return (worker: number, constraint?: TargetConstraint): TargetState =>
    pick(routes[worker] ?? assert.fail(`there is no worker ${worker}`), constraint);
}

function pick(route: Route, constraint: TargetConstraint | undefined): TargetState {
  let picked: TargetState | undefined;
  route.obtain({
    kind: "seat",
    fresh: false,
    preface: undefined,
    since: 0,
    refused_at: undefined,
    aborted: false,
    constraint: constraint,
    got: (target) => {
      picked = target;
    },
    refused: ({ text: why }) => assert.fail(why),
  });
  return picked ?? assert.fail("no machine was picked");
}

const idOf = ({ table }: TargetState): string => table.machine_id;
/** One request that is over before the next begins. */
function passing(target: TargetState): string {
  target.release();
  return idOf(target);
}

suite("target selection", () => {
  test("workers share one round-robin order instead of each starting at the first machine", () => {
    const pickIn = workers(4, ["a", "b"]);
    const picked = Array.from({ length: 8 }, (_, i) => passing(pickIn(i % 4)));
    assert.deepEqual(picked, ["a", "b", "a", "b", "a", "b", "a", "b"]);
  });

  test("a less loaded machine is picked before the next in turn", () => {
    const pickIn = workers(1, ["a", "b", "c"]);
    const held = [pickIn(0), pickIn(0)];
    assert.deepEqual(held.map(idOf), ["a", "b"]);
    assert.deepEqual([passing(pickIn(0)), passing(pickIn(0))], ["c", "c"]);
    held[1]?.release();
    assert.deepEqual([passing(pickIn(0)), passing(pickIn(0)), passing(pickIn(0))], ["b", "c", "b"]);
  });

  test("a new machine gets its share, not every request until it has caught up", () => {
    const slots = new Slots();
    const before = workers(2, ["a", "b"], slots);
    for (let i = 0; i < 100; i++) passing(before(i % 2));
    const after = workers(2, ["a", "b", "c"], slots);
    const picked = Array.from({ length: 9 }, (_, i) => passing(after(i % 2)));
    for (const name of ["a", "b", "c"]) assert.equal(picked.filter((one) => one === name).length, 3, picked.join(" "));
  });

  test("a preferred machine is always picked, and the others continue in turn", () => {
    const pickIn = workers(1, ["a", "b", "c"]);
    assert.deepEqual(
      Array.from({ length: 3 }, () => passing(pickIn(0, { prefer: "b" }))),
      ["b", "b", "b"],
    );
    assert.deepEqual(
      Array.from({ length: 4 }, () => passing(pickIn(0, { not: "b" }))),
      ["a", "c", "a", "c"],
    );
  });
});
