/** Traces, counted routes and the list of failed requests, through the data plane and real servers. */
import assert from "node:assert/strict";
import type { IncomingHttpHeaders, RequestListener } from "node:http";
import { connect as connectHttp2 } from "node:http2";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import { aBackend, aPlane, aTarget, OPTIONS, type TestPlane } from "../../fixtures.ts";
import { PROXY_LIMITS } from "../../limits.ts";
import type { RecentRequest, Target } from "../../table.ts";
import type { Span } from "./span.ts";
import { Tracer } from "./tracer.ts";

const TRACE = "12345678901234567890123456789012";
const PARENT = `00-${TRACE}-1234567890123456-01`;

interface Traced {
  plane: TestPlane;
  /** Headers that machines received. */
  seen: IncomingHttpHeaders[];
  get(path: string, lines?: string): Promise<string>;
  /** The reported spans, when there are this many. */
  spans(count: number): Promise<Span[]>;
  requests(count: number): Promise<RecentRequest[]>;
}

async function reported<T>(read: () => T[], count: number): Promise<T[]> {
  for (;;) {
    const found = read();
    if (found.length >= count) return found;
    await new Promise((resolve) => setTimeout(resolve, 5));
  }
}

async function traced(t: TestContext, listener: RequestListener, { ratio }: { ratio: number | undefined }) {
  const seen: IncomingHttpHeaders[] = [];
  const { port } = await aBackend(t, (request, response) => {
    seen.push(request.headers);
    listener(request, response);
  });
  const plane = await aPlane(t, systemClock, ratio === undefined ? undefined : { ratio });
  await plane.serve({ targets: [aTarget(port)], options: { routes: ["/users/:id", "/assets/*"] } });
  const spans = (): Span[] => plane.reports.flatMap((report) => (report.type === "spans" ? report.spans : []));
  const requests = (): RecentRequest[] =>
    plane.reports.flatMap((report) => (report.type === "requests" ? report.requests : []));
  const rig: Traced = {
    plane,
    seen,
    get: (path, lines = "") =>
      plane.raw(`GET ${path} HTTP/1.1\r\nhost: web.localhost\r\nconnection: close\r\n${lines}\r\n`),
    spans: (count) => reported(spans, count),
    requests: (count) => reported(requests, count),
  };
  return { ...rig, port };
}

const child = (spans: readonly Span[]): Span => spans.find(({ kind }) => kind === "client") as Span;
const server = (spans: readonly Span[]): Span => spans.find(({ kind }) => kind === "server") as Span;
const header = (answer: string, name: string): string | undefined =>
  new RegExp(`^${name}: (.*)\r$`, "m").exec(answer)?.[1];

suite("traces of requests", () => {
  test("a client's trace continues at the machine, whose parent is the span of the attempt", async (t) => {
    const { get, spans, seen } = await traced(t, (_request, response) => response.end("hello"), { ratio: 0 });
    const answer = await get(
      "/users/7?token=secret",
      `traceparent: ${PARENT}\r\ntracestate: foo=1,bar=2\r\nuser-agent: me\r\n`,
    );
    const all = await spans(2);
    const [own, attempt] = [server(all), child(all)];
    assert.equal(all.length, 2);
    assert.deepEqual([own.trace_id, own.parent_id, own.name], [TRACE, "1234567890123456", "GET /users/:id"]);
    assert.deepEqual([attempt.trace_id, attempt.parent_id, attempt.name], [TRACE, own.span_id, "GET"]);
    assert.equal(seen[0]?.["traceparent"], `00-${TRACE}-${attempt.span_id}-01`);
    assert.equal(seen[0]?.["tracestate"], "foo=1,bar=2");
    assert.equal(seen[0]?.["svc-request-id"], header(answer, "svc-request-id"));
    assert.equal(own.attributes["svc.request_id"], header(answer, "svc-request-id"));
    assert.equal(own.attributes["url.path"], "/users/7");
    assert.equal(own.attributes["http.route"], "/users/:id");
    assert.equal(own.attributes["http.response.status_code"], 200);
    assert.equal(own.attributes["user_agent.original"], "me");
    assert.equal(own.attributes["network.protocol.version"], "1.1");
    assert.doesNotMatch(JSON.stringify(all), /secret/);
    assert.ok(own.start_ms <= attempt.start_ms && attempt.end_ms <= own.end_ms);
    assert.ok(Math.abs(own.end_ms - Date.now()) < 60_000);
    assert.equal(own.error ?? attempt.error, undefined);
  });

  test("an invalid header is replaced by a new trace, and an unsampled one stays unsampled", async (t) => {
    const { get, seen } = await traced(t, (_request, response) => response.end("hello"), { ratio: 1 });
    await get("/", `traceparent: 00-${TRACE}-0000000000000000-01\r\ntracestate: foo=1\r\n`);
    await get("/", `traceparent: 00-${TRACE}-1234567890123456-00\r\n`);
    await get("/", `Traceparent: ${PARENT}\r\ntraceparent: ${PARENT}\r\n`);
    const [invalid = "", unsampled = "", twice = ""] = seen.map(({ traceparent }) => String(traceparent));
    assert.match(invalid, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    assert.ok(!invalid.includes(TRACE) && seen[0]?.["tracestate"] === undefined);
    assert.match(unsampled, new RegExp(`^00-${TRACE}-(?!1234567890123456)[0-9a-f]{16}-00$`));
    assert.match(twice, /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
    assert.ok(!twice.includes(TRACE));
  });

  test("without tracing the client's headers pass unchanged, and without them none is added", async (t) => {
    const { get, seen } = await traced(t, (_request, response) => response.end("hello"), { ratio: undefined });
    await get("/", "traceparent: not valid\r\ntracestate: FOO\r\n");
    await get("/");
    assert.deepEqual([seen[0]?.["traceparent"], seen[0]?.["tracestate"]], ["not valid", "FOO"]);
    assert.deepEqual([seen[1]?.["traceparent"], seen[1]?.["tracestate"]], [undefined, undefined]);
  });

  test("a failed request is recorded although its trace is not sampled, and listed", async (t) => {
    const answer: RequestListener = (request, response) => {
      if (request.url === "/broken") response.socket?.destroy();
      else response.writeHead(500).end("no");
    };
    const { get, spans, requests, seen } = await traced(t, answer, { ratio: 0 });
    const answers = [await get("/fails?password=x"), await get("/broken")];
    const [failed, broken] = (await requests(2)) as [RecentRequest, RecentRequest];
    const all = await spans(4);
    const ids = answers.map((text) => header(text, "svc-request-id"));
    assert.deepEqual([failed.path, failed.status, failed.reason, failed.request_id], ["/fails", 500, null, ids[0]]);
    assert.deepEqual([broken.status, broken.reason, broken.request_id], [502, "broken_off", ids[1]]);
    assert.equal(failed.trace_id, String(seen[0]?.["traceparent"]).split("-")[1]);
    assert.match(String(seen[0]?.["traceparent"]), /-00$/);
    const errors = all.filter(({ kind }) => kind === "server").map(({ error }) => error);
    assert.deepEqual(errors, ["500", "broken_off"]);
  });

  test("a replay shows both machines, and the second one's parent is its own attempt", async (t) => {
    const seen: IncomingHttpHeaders[] = [];
    const machine = async (id: string, slot: number, listener: RequestListener): Promise<Target> => {
      const { port } = await aBackend(t, (request, response) => {
        seen.push(request.headers);
        listener(request, response);
      });
      return aTarget(port, { machine_id: id, slot });
    };
    const plane = await aPlane(t, systemClock, { ratio: 1 });
    const first = await machine("a", 1, (_request, response) =>
      response.writeHead(409, { "svc-replay": "instance=b" }).end(),
    );
    const second = await machine("b", 2, (_request, response) => response.end("b"));
    assert.ok(plane.slots.acquire(2, 1, 1));
    await plane.serve({ targets: [first, second] });
    await plane.raw("GET / HTTP/1.1\r\nhost: web.localhost\r\nconnection: close\r\n\r\n");
    const spans = await reported(
      () => plane.reports.flatMap((report) => (report.type === "spans" ? report.spans : [])),
      3,
    );
    const attempts = spans.filter(({ kind }) => kind === "client");
    assert.deepEqual(
      attempts.map(({ attributes }) => [attributes["svc.machine_id"], attributes["http.response.status_code"]]),
      [
        ["a", 409],
        ["b", 200],
      ],
    );
    assert.deepEqual(
      attempts.map(({ attributes }) => [attributes["svc.replay"], attributes["http.request.resend_count"]]),
      [
        [true, undefined],
        [undefined, 1],
      ],
    );
    assert.deepEqual(
      seen.map(({ traceparent }) => String(traceparent).split("-")[2]),
      attempts.map(({ span_id }) => span_id),
    );
  });

  test("the start of a machine is a span of its own", async (t) => {
    const { port } = await aBackend(t, (_request, response) => response.end("awake"));
    const plane = await aPlane(t, systemClock, { ratio: 1 });
    const startable = [{ machine_id: `m${port}`, region: "local" }];
    await plane.serve({ targets: [], port: { startable } });
    const answer = plane.raw("GET / HTTP/1.1\r\nhost: web.localhost\r\nconnection: close\r\n\r\n");
    await reported(() => plane.reports.filter(({ type }) => type === "start"), 1);
    await plane.serve({ targets: [aTarget(port)] });
    assert.match(await answer, /awake/);
    const spans = await reported(
      () => plane.reports.flatMap((report) => (report.type === "spans" ? report.spans : [])),
      3,
    );
    assert.deepEqual(
      spans.map(({ kind, name }) => [kind, name]),
      [
        ["server", "GET"],
        ["internal", "start machine"],
        ["client", "GET"],
      ],
    );
    const [, wait, attempt] = spans as [Span, Span, Span];
    assert.ok(wait.end_ms <= attempt.start_ms);
  });

  test("an HTTP/2 request is traced likewise", async (t) => {
    const { plane, seen, port, spans } = await traced(t, (_request, response) => response.end("hello"), { ratio: 0 });
    await plane.serve({ targets: [aTarget(port)], options: { ...OPTIONS, tls: true } });
    const session = connectHttp2(`https://127.0.0.1:${plane.port}`, {
      servername: "web.localhost",
      rejectUnauthorized: false,
    });
    t.after(() => session.destroy());
    const request = session.request({ ":path": "/", traceparent: PARENT, tracestate: "foo=1" });
    request.resume();
    await new Promise((resolve) => request.once("end", resolve));
    const all = await spans(2);
    assert.equal(server(all).attributes["network.protocol.version"], "2");
    assert.equal(server(all).attributes["url.scheme"], "https");
    assert.equal(seen[0]?.["traceparent"], `00-${TRACE}-${child(all).span_id}-01`);
    assert.equal(seen[0]?.["tracestate"], "foo=1");
  });

  test("named routes are counted on their own, and all other paths together", async (t) => {
    const { get, plane } = await traced(t, (_request, response) => response.end("hello"), { ratio: undefined });
    for (const path of ["/users/1", "/users/2?x=1", "/assets/a/b.css", "/users/1/posts", "/invented", "/else"])
      await get(path);
    const counts = await reported(
      () =>
        plane.reports.flatMap((report) =>
          report.type === "counts"
            ? report.counts.filter(({ name }) => name === "svc_edge_http_route_response_time_seconds")
            : [],
        ),
      3,
    );
    const sums = new Map<string, number>();
    for (const { labels, by } of counts) sums.set(labels["route"] ?? "", (sums.get(labels["route"] ?? "") ?? 0) + by);
    assert.deepEqual(Object.fromEntries(sums), { "/users/:id": 2, "/assets/*": 1, other: 3 });
  });

  test("more traces in a second than traces_per_second are dropped and counted", () => {
    let now = 0;
    const tracer = new Tracer({ ratio: 1 }, { monotonic: () => now, now: () => now });
    const span = (): Span => ({
      ...tracer.begin(""),
      parent_id: undefined,
      state: "",
      name: "GET",
      kind: "server",
      start_ms: now,
      end_ms: now,
      attributes: {},
      error: undefined,
    });
    for (let i = 0; i < PROXY_LIMITS.traces_per_second + 5; i++) tracer.record(() => [span()]);
    const { spans, dropped } = tracer.take() ?? { spans: [], dropped: 0 };
    assert.deepEqual([spans.length, dropped], [PROXY_LIMITS.traces_per_second, 5]);
    now += 1000;
    tracer.record(() => [span()]);
    assert.deepEqual([tracer.take()?.spans.length, tracer.take()], [1, undefined]);
  });
});
