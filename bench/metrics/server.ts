/**
 * The metrics engine behind plain HTTP, as the benchmarks' peers are: remote write in, the query API out.
 *
 *     node server.ts DIR      says its port on the first line
 */
import { createServer, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import type { Scope } from "#metrics/tsdb/index/scope.ts";
import { systemClock } from "../../src/core/clock.ts";
import { openMetricsEngine } from "../../src/metrics/engine/engine.ts";

const ORG = "bench";
const engine = openMetricsEngine({
  dir: process.argv[2] ?? "",
  clock: systemClock,
  // The data set lies years back, as it does for the peers.
  limits: { retention_ms: 100 * 365 * 86_400_000 },
});

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const parts: Buffer[] = [];
  for await (const part of request) parts.push(part as Buffer);
  return Buffer.concat(parts);
}

const ms = (query: URLSearchParams, name: string): number => Number(query.get(name)) * 1000;

/** The benchmarks ask for all series of one metric, or for everything. */
function scopeOf(query: URLSearchParams): Scope {
  const name = query.get("match[]");
  const selector = name === null ? {} : { selector: [[{ name: "__name__", op: "=" as const, value: name }]] };
  return { ...selector, start_ms: ms(query, "start"), end_ms: ms(query, "end") };
}

/** The whole answer of a query; undefined when the path is about something else. */
async function queryOf(path: string, query: URLSearchParams): Promise<Uint8Array | undefined> {
  const text = query.get("query") ?? "";
  if (path === "/api/v1/query") {
    const time = ms(query, "time");
    return engine.query(ORG, { query: text, start_ms: time, end_ms: time, nocache: true });
  }
  if (path !== "/api/v1/query_range") return undefined;
  const grid = { start_ms: ms(query, "start"), end_ms: ms(query, "end"), step_ms: ms(query, "step") };
  return engine.query(ORG, { query: text, ...grid, nocache: true });
}

async function dataOf(path: string, query: URLSearchParams): Promise<Uint8Array | string> {
  if (path === "/api/v1/series") return engine.series(ORG, scopeOf(query));
  const label = /^\/api\/v1\/label\/(.+)\/values$/.exec(path)?.[1];
  if (label !== undefined) return JSON.stringify(await engine.labelValues(ORG, label, scopeOf(query)));
  if (path === "/status") return JSON.stringify(await engine.status(ORG));
  if (path === "/compact") await engine.compact(ORG);
  if (path === "/flush") await engine.flush(ORG);
  return "null";
}

const enveloped = (data: Uint8Array | string): Uint8Array | string =>
  typeof data === "string"
    ? `{"status":"success","data":${data}}`
    : Buffer.concat([Buffer.from('{"status":"success","data":'), data, Buffer.from("}")]);

const server = createServer((request, response) => {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  const answer = async (): Promise<void> => {
    if (pathname === "/api/v1/write") {
      await engine.importRemoteWrite(ORG, await bodyOf(request));
      response.writeHead(204).end();
      return;
    }
    const answered = (await queryOf(pathname, searchParams)) ?? enveloped(await dataOf(pathname, searchParams));
    const length = Buffer.byteLength(answered);
    response.writeHead(200, { "content-type": "application/json", "content-length": length }).end(answered);
  };
  answer().catch((error: unknown) => response.writeHead(500).end(String(error)));
});
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`${(server.address() as AddressInfo).port}\n`);
});
process.on("SIGTERM", () => {
  void engine.close().then(() => process.exit(0));
});
