/** OpenTelemetry's own Go libraries before, behind and beside the edge proxy of a platform: one trace runs through. */
import assert from "node:assert/strict";
import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { suite, type TestContext, test } from "node:test";
import { freePort } from "#proxy/fixtures.ts";
import { type TestPlatform, testPlatform } from "../platform.ts";
import { tempDir, until } from "../support.ts";

const source = join(import.meta.dirname, "../traces-go");

interface Span {
  Service: string;
  Name: string;
  Kind: string;
  Trace: string;
  ID: string;
  Parent: string;
  Status: string;
  Message: string;
  Attributes: Record<string, string>;
}

interface Judge {
  ports: { receiver: string; machine: string };
  get(url: string): Promise<{ status: number; body: string; request_id: string }>;
  spans(): Promise<Span[]>;
}

/** Undefined, and the test skipped with the reason, where it cannot be built. */
async function theJudge(t: TestContext): Promise<Judge | undefined> {
  const program = join(tempDir(), "judge");
  const made = spawnSync("go", ["build", "-o", program, "."], { cwd: source, encoding: "utf8" });
  if (made.status !== 0) {
    t.skip(`no Go toolchain, or its modules cannot be had: ${made.error?.message ?? made.stderr.slice(0, 200)}`);
    return undefined;
  }
  const child = spawn(program, { stdio: ["pipe", "pipe", "inherit"] });
  t.after(async () => {
    child.stdin.end();
    await once(child, "exit");
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const read = async (): Promise<unknown> => JSON.parse(String((await lines.next()).value));
  const ports = (await read()) as Judge["ports"];
  const ask = async (line: string): Promise<unknown> => {
    child.stdin.write(`${line}\n`);
    return await read();
  };
  return {
    ports,
    get: async (url) => (await ask(url)) as Awaited<ReturnType<Judge["get"]>>,
    spans: async () => (await ask("spans")) as Span[],
  };
}

/** An app whose machine is the judge's server. */
async function served(t: TestContext, { ports }: Judge): Promise<{ platform: TestPlatform; url: string }> {
  const port = await freePort();
  const platform = await testPlatform(
    t,
    {
      HANGAR_PROXY_WORKERS: "1",
      HANGAR_TRACES_URL: `http://127.0.0.1:${ports.receiver}`,
      HANGAR_TRACES_HEADERS: "x-scope = one",
      HANGAR_TRACES_RATIO: "0",
    },
    { reach: () => ({ host: "127.0.0.1", port: Number(ports.machine) }) },
  );
  await platform.ask("POST /v1/apps", { body: { app_name: "web", org_slug: "personal" } });
  await platform.ask("POST /v1/apps/web/ip_assignments", { body: { type: "shared_v4" } });
  const http_options = { routes: ["/users/:id"] };
  const services = [
    { protocol: "tcp", internal_port: 8080, autostart: true, ports: [{ port, handlers: ["http"], http_options }] },
  ];
  const { body } = await platform.ask("POST /v1/apps/web/machines", { body: { config: { image: "web:1", services } } });
  await platform.ask(`GET /v1/apps/web/machines/${body.id}/wait?state=started`);
  return { platform, url: `http://127.0.0.1:${port}` };
}

suite("traces, judged by OpenTelemetry's libraries", () => {
  test("one trace runs from the client through the proxy to the machine", async (t) => {
    const judge = await theJudge(t);
    if (!judge) return;
    const { platform, url } = await served(t, judge);
    const { status, body, request_id } = await judge.get(`${url}/users/7?secret=1`);
    assert.deepEqual([status, body], [200, request_id]);
    await judge.get(`${url}/fails`);
    let spans: Span[] = [];
    await until("all spans of both requests are exported", async () => {
      // A request that came before the machine's port was open waited for it.
      spans = (await judge.spans()).filter(({ Kind }) => Kind !== "SPAN_KIND_INTERNAL");
      return spans.length >= 8;
    });
    assert.equal(spans.length, 8);
    const [trace] = spans
      .filter(({ Attributes }) => Attributes["svc.request_id"] === request_id)
      .map(({ Trace }) => Trace);
    const own = spans.filter(({ Trace }) => Trace === trace);
    const chain: Span[] = [];
    for (let parent = ""; chain.length < 5; ) {
      const next = own.find(({ Parent }) => Parent === parent);
      if (!next) break;
      chain.push(next);
      parent = next.ID;
    }
    assert.deepEqual(
      chain.map(({ Kind, Name, Service }) => [Kind, Name, Service === "hangar-proxy"]),
      [
        ["SPAN_KIND_CLIENT", "HTTP GET", false],
        ["SPAN_KIND_SERVER", "GET /users/:id", true],
        ["SPAN_KIND_CLIENT", "GET", true],
        ["SPAN_KIND_SERVER", "GET", false],
      ],
    );
    assert.doesNotMatch(JSON.stringify(spans.filter(({ Service }) => Service === "hangar-proxy")), /secret/);
    const failed = spans.filter(({ Service, Status }) => Service === "hangar-proxy" && Status === "STATUS_CODE_ERROR");
    assert.deepEqual(
      failed.map(({ Message, Attributes }) => [Message, Attributes["http.response.status_code"]]),
      [
        ["500", "500"],
        ["500", "500"],
      ],
    );
    const { requests } = (await platform.ask("GET /v1/apps/web/requests")).body;
    assert.deepEqual(
      requests.map((one: { path: string; trace_id: string; status: number }) => [one.path, one.status, one.trace_id]),
      [["/fails", 500, failed[0]?.Trace]],
    );
  });
});
