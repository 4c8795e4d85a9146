/** Requests made from our own OpenAPI document: no 5xx, none that costs a second, every answer as documented. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { answerChecker, type Document, generator, type Operation, operations } from "../openapi.ts";
import { type Answer, type TestPlatform, testPlatform } from "../platform.ts";
import { random, runs, seed, workSince } from "../support.ts";

/** Of work, which is the same on a box that is busy with something else; and of time, for one that hangs. */
const DEAR_MS = 1000;
const DEAR_TRIES = 3;
const HUNG_MS = 60_000;

test("a fuzzed request never crashes the platform, and every response is documented (P8)", async (t) => {
  const platform = await testPlatform(t);
  const next = random(seed(t));
  const document: Document = JSON.parse((await platform.ask("GET /openapi.json")).text);
  // Whoever comes first waits for the dashboard's files to be made, which costs a second once.
  await platform.ask("GET /");
  // Pulling asks registries: what they do is not ours to test here.
  const all = operations(document).filter(({ path }) => path !== "/v1/images/pull");
  const check = answerChecker(document);
  const tokens = await makeTokens(platform);
  const wrong: string[] = [];
  const seen = new Map<number, number>();
  const total = runs(3000, 25_000, 100_000);
  for (let i = 0; i < total; i++) {
    const operation = all[Math.floor(next() * all.length)] as Operation;
    const request = compose(operation, next, tokens);
    const { answer, ...took } = await measured(platform, request);
    seen.set(answer.status, (seen.get(answer.status) ?? 0) + 1);
    const fault = faultOf(operation, answer, took, check) ?? (await dearness(platform, request, took));
    if (fault) wrong.push(`${request.target} ${JSON.stringify(request.body)?.slice(0, 200)}: ${fault}`);
    if (wrong.length > 5) break;
  }
  assert.deepEqual(wrong, []);
  t.diagnostic(
    `${total} requests over ${all.length} operations: ${[...seen]
      .sort(([a], [b]) => a - b)
      .map(([status, n]) => `${status}×${n}`)
      .join(" ")}`,
  );
  for (const status of [200, 201, 400, 401, 403, 404, 422]) assert.ok(seen.get(status), `the fuzz reached ${status}`);
});

interface Took {
  work_ms: number;
  ms: number;
}

interface Composed {
  target: string;
  body: unknown;
  token: string | null;
  headers: Record<string, string>;
}

async function makeTokens({ ask, token }: TestPlatform): Promise<(string | null)[]> {
  await ask("POST /v1/orgs", { body: { name: "acme" } });
  await ask("POST /v1/apps", { body: { app_name: "web" } });
  const make = async (kind: string): Promise<string> =>
    (await ask("POST /v1/orgs/personal/tokens", { body: { kind } })).body.token;
  return [token, token, token, token, await make("org"), await make("readonly"), null, "hm1_garbage"];
}

function compose(operation: Operation, next: () => number, tokens: (string | null)[]): Composed {
  const { value, name } = generator(next);
  const path = operation.path.replaceAll(/\{\w+\}/g, () => encodeURIComponent(name()));
  const query = new URLSearchParams();
  for (const parameter of operation.parameters) {
    if (parameter.in === "query" && next() < 0.5) query.append(parameter.name, String(value(parameter.schema)));
  }
  const schema = operation.requestBody?.content?.["application/json"]?.schema;
  const key = operation.method === "POST" && next() < 0.2 ? { "idempotency-key": `k${Math.floor(next() * 20)}` } : {};
  return {
    target: `${operation.method} ${path}${query.size > 0 ? `?${query.toString()}` : ""}`,
    body: schema && next() < 0.97 ? value(schema) : undefined,
    token: tokens[Math.floor(next() * tokens.length)] ?? null,
    headers: key as Record<string, string>,
  };
}

async function send(platform: TestPlatform, { target, body, token, headers }: Composed): Promise<Answer> {
  const payload = body === undefined ? {} : { body: JSON.stringify(body) };
  return await platform.ask(target, { token, headers, ...payload });
}

async function measured(platform: TestPlatform, request: Composed): Promise<Took & { answer: Answer }> {
  const [started, before] = [performance.now(), process.cpuUsage()];
  const answer = await send(platform, request);
  return { answer, work_ms: workSince(before), ms: performance.now() - started };
}

/** The process also collects garbage and compiles: a request is dear when it is dear each time that it is made. */
async function dearness(platform: TestPlatform, request: Composed, first: Took): Promise<string | undefined> {
  const tries = [first.work_ms];
  while (Math.min(...tries) > DEAR_MS) {
    if (tries.length === DEAR_TRIES) return `costs ${tries.map(Math.round).join(", ")} ms of work`;
    tries.push((await measured(platform, request)).work_ms);
  }
  return undefined;
}

function faultOf(
  operation: Operation,
  answer: Answer,
  took: Took,
  check: ReturnType<typeof answerChecker>,
): string | undefined {
  if (answer.status >= 500) return `${answer.status} ${answer.text}`;
  if (took.ms > HUNG_MS) return `took ${JSON.stringify(took)}`;
  if (!answer.headers["svc-request-id"]) return "has no svc-request-id";
  return check(operation, answer.status, answer.text);
}
