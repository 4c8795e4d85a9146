/** Requests that a machine replays to another one, through the data plane and real servers. */
import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingHttpHeaders, type IncomingMessage, request, type ServerResponse } from "node:http";
import { connect as connectSecure } from "node:http2";
import { text as read } from "node:stream/consumers";
import { suite, type TestContext, test } from "node:test";
import { aBackend, aPlane, aTarget, type TestPlane } from "../../fixtures.ts";
import { PROXY_LIMITS } from "../../limits.ts";
import type { Target } from "../../table.ts";

interface Seen {
  machine: string;
  body: string;
  source: string;
}

interface Machines {
  seen: Seen[];
  targets: Target[];
  send(path: string, body?: string): Promise<{ status: number; text: string; headers: IncomingHttpHeaders }>;
  plane: TestPlane;
}

/**
 * Two machines, a and b. `wants` returns the replay that a machine requests for a path; otherwise it answers itself.
 */
async function twoMachines(
  t: TestContext,
  wants: (machine: string, path: string) => string | undefined,
): Promise<Machines> {
  const seen: Seen[] = [];
  const listener =
    (machine: string) =>
    async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
      let body = "";
      for await (const chunk of request) body += String(chunk);
      seen.push({ machine, body, source: String(request.headers["svc-replay-src"] ?? "") });
      const constraint = wants(machine, request.url ?? "");
      if (constraint === undefined) response.end(`${machine} has ${body.length}`);
      else response.writeHead(409, { "svc-replay": constraint }).end("not here");
    };
  const serve = async (machine: string, slot: number): Promise<Target> => {
    const { port } = await aBackend(t, (request, response) => void listener(machine)(request, response));
    return aTarget(port, { machine_id: machine, slot, region: machine === "a" ? "fra" : "ams" });
  };
  const targets = [await serve("a", 1), await serve("b", 2)];
  const plane = await aPlane(t);
  // The second is busy already, through another worker: requests go to the first.
  assert.ok(plane.slots.acquire(2, 1, 1));
  await plane.serve({ targets });
  return {
    seen,
    targets,
    plane,
    async send(path, body) {
      const sent = request({
        port: plane.port,
        path,
        method: body === undefined ? "GET" : "POST",
        headers: { host: "web.localhost" },
        agent: false,
      }).end(body);
      const [answer] = (await once(sent, "response")) as [IncomingMessage];
      return { status: answer.statusCode ?? 0, text: await read(answer), headers: answer.headers };
    },
  };
}

const constraintOf = (path: string): string => decodeURIComponent(path.slice("/to/".length));

suite("replay", () => {
  test("a request is replayed to an instance with its body, and the second machine sees its source", async (t) => {
    const { send, seen } = await twoMachines(t, (machine, path) => (machine === "a" ? constraintOf(path) : undefined));
    const { status, text, headers } = await send("/to/instance=b;state=x-1", "0123456789");
    assert.deepEqual([status, text, headers["svc-replay"]], [200, "b has 10", undefined]);
    assert.deepEqual(
      seen.map(({ machine, body }) => [machine, body]),
      [
        ["a", "0123456789"],
        ["b", "0123456789"],
      ],
    );
    assert.equal(seen[0]?.source, "");
    assert.match(seen[1]?.source ?? "", /^instance=a;region=fra;t=\d{16};state=x-1$/);
  });

  for (const constraint of ["region=ams", "elsewhere=true", "prefer_instance=b", "app=web;instance=b"]) {
    test(`${constraint} is replayed to the other machine`, async (t) => {
      const { send } = await twoMachines(t, (machine, path) => (machine === "a" ? constraintOf(path) : undefined));
      assert.equal((await send(`/to/${constraint}`)).text, "b has 0");
    });
  }

  test("a request is replayed once: a loop and an unknown target are refused", async (t) => {
    const { send, seen } = await twoMachines(t, (machine, path) =>
      path === "/loop" ? `instance=${machine === "a" ? "b" : "a"}` : machine === "a" ? constraintOf(path) : undefined,
    );
    const loop = await send("/loop");
    assert.deepEqual([loop.status, loop.headers["svc-reason"], seen.length], [502, "replay_loop", 2]);
    assert.match(loop.text, /machine b of web requested a replay \(instance=a\)/);
    for (const constraint of ["instance=none", "region=mars", "app=other", "nonsense"]) {
      const { status, headers } = await send(`/to/${constraint}`);
      assert.deepEqual([status, headers["svc-reason"]], [502, "replay_refused"], constraint);
    }
  });

  test("a request is replayed to another app of the same organization, not of another", async (t) => {
    const { send, plane, targets } = await twoMachines(t, (machine, path) =>
      machine === "a" ? constraintOf(path) : undefined,
    );
    const [a, b] = targets as [Target, Target];
    await plane.serve({ targets: [a] });
    await plane.serve({ app: { app_name: "mine" }, targets: [b] });
    await plane.serve({ app: { app_name: "theirs", org_id: "o2" }, targets: [{ ...b, slot: 3 }] });
    assert.equal((await send("/to/app=mine")).text, "b has 0");
    assert.equal((await send("/to/app=theirs")).status, 502);
  });

  test("a body over the limit is passed on, and its replay refused", async (t) => {
    const { send, plane } = await twoMachines(t, (machine, path) => (machine === "a" ? constraintOf(path) : undefined));
    const small = "x".repeat(PROXY_LIMITS.replay_bytes / 2);
    assert.equal((await send("/to/instance=b", small)).text, `b has ${small.length}`);
    const { status, headers } = await send("/to/instance=b", "x".repeat(PROXY_LIMITS.replay_bytes + 1));
    assert.deepEqual([status, headers["svc-reason"]], [502, "replay_body"]);
    assert.equal(plane.plane.replayBudget.bytes, 0);
  });

  test("a stopped machine is started for a replay and gets the request", async (t) => {
    const { send, plane, targets } = await twoMachines(t, (machine, path) =>
      machine === "a" ? constraintOf(path) : undefined,
    );
    const [a, b] = targets as [Target, Target];
    await plane.serve({ targets: [a], port: { startable: [{ machine_id: "b", region: "ams" }] } });
    const answer = send("/to/instance=b");
    while (!plane.reports.some((one) => one.type === "start" && one.machine_id === "b"))
      await new Promise((resolve) => setImmediate(resolve));
    await plane.serve({ targets: [a, b] });
    assert.equal((await answer).text, "b has 0");
  });

  test("a request is replayed over HTTP/2", async (t) => {
    const { plane, targets } = await twoMachines(t, (machine, path) =>
      machine === "a" ? constraintOf(path) : undefined,
    );
    await plane.serve({ targets, options: { tls: true } });
    const session = connectSecure(`https://127.0.0.1:${plane.port}`, { rejectUnauthorized: false });
    t.after(() => session.destroy());
    const stream = session.request({ ":path": "/to/instance=b", ":method": "POST", ":authority": "web.localhost" });
    stream.end("hello");
    let text = "";
    for await (const chunk of stream) text += String(chunk);
    assert.equal(text, "b has 5");
  });
});
