/** The platform under mixed load for as long as there is: its memory and its open files stay what they are. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { suite, type TestContext, test } from "node:test";
import { runs, tempDir, until } from "../support.ts";
import { type Daemon, startDaemon } from "./daemon.ts";
import { descriptorsOf } from "./leaks.ts";

const MINUTE = 60_000;
/** At a push the machinery alone: how memory grows shows in minutes, not in rounds. */
const SOAK_MS = runs(0, 3 * MINUTE, 30 * MINUTE);
const ROUNDS = runs(3, 20, 20);
/**
 * V8 takes what a box has before it collects, and is done with that after ten minutes. In three it shows only with less
 * to take whether more and more stays.
 */
const SHORT = runs(0, 1, 0) === 1;
const HEAP = SHORT ? { NODE_OPTIONS: "--max-old-space-size=128 --max-semi-space-size=4" } : {};
const CLIENTS = 8;
/** Connections that clients keep open, and whatever the platform is just doing. */
const SPARE_FILES = 2 * CLIENTS;
/** What ten minutes may add once everything is warm. */
const GROWTH_MB = 1;
/** A single look at memory is as good as the moment of the last collection: so much more or less says nothing. */
const NOISE_MB = 16;

interface Sample {
  at_ms: number;
  files: number;
  memory_mb: number;
}

const memoryOf = (pid: number): number =>
  Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) / 1024;

/** A machine's whole life, with what people do around it. */
async function live({ call, base_url, token }: Daemon, name: string): Promise<void> {
  const ok = async (method: string, path: string, body?: object, headers = {}): Promise<Record<string, unknown>> => {
    // One that a busy box took too long to send was not begun.
    const answer = await until(`${method} ${path} arrives`, async () => {
      const found = await call(method, path, body, headers);
      return found.body["status"] === "request_timeout" ? undefined : found;
    });
    assert.ok(answer.status < 300, `${method} ${path}: ${answer.status} ${JSON.stringify(answer.body)}`);
    return answer.body;
  };
  const following = new AbortController();
  const headers = { authorization: `Bearer ${token}`, accept: "text/event-stream" };
  const stream = await fetch(`${base_url}/v1/apps/web/events`, { headers, signal: following.signal });
  assert.equal(stream.status, 200);
  const machine = `/v1/apps/web/machines/${String((await ok("POST", "/v1/apps/web/machines", { name, config: { image: "x" } }))["id"])}`;
  await ok("GET", `${machine}/wait?state=started&timeout=120`);
  const { nonce } = (await ok("POST", `${machine}/lease`, { ttl: 30 }))["data"] as { nonce: string };
  const held = { "svc-machine-lease-nonce": nonce };
  await ok("POST", `${machine}/metadata/round`, { value: name }, held);
  await ok("POST", `${machine}/exec`, { command: ["echo", name] }, held);
  await ok("POST", `${machine}/stop`, {}, held);
  await ok("GET", `${machine}/wait?state=settled&timeout=120`);
  await ok("DELETE", `${machine}/lease`, undefined, held);
  await ok("POST", `/v1/apps/web/secrets/${name.replace("-", "_").toUpperCase()}`, { value: "x".repeat(1000) });
  await ok("GET", "/v1/apps/web/machines");
  await ok("DELETE", `${machine}?force=true`);
  await ok("GET", `${machine}/wait?state=destroyed&timeout=120`);
  following.abort();
  await stream.body?.cancel().catch(() => {});
}

const median = (numbers: readonly number[]): number =>
  numbers.toSorted((a, b) => a - b)[Math.floor(numbers.length / 2)] ?? 0;

/** What is wrong with a row of samples. The first third is for warming up. */
function judge(samples: readonly Sample[]): string[] {
  const third = Math.floor(samples.length / 3);
  const [middle, last] = [samples.slice(third, 2 * third), samples.slice(2 * third)];
  const half = (list: readonly Sample[], of: "files" | "memory_mb" | "at_ms"): number =>
    median(list.map((one) => one[of]));
  const tens = (half(last, "at_ms") - half(middle, "at_ms")) / (10 * MINUTE);
  const grown = half(last, "memory_mb") - half(middle, "memory_mb");
  const opened = half(last, "files") - half(middle, "files");
  return [
    ...(grown > NOISE_MB + GROWTH_MB * tens ? [`memory grew by ${grown.toFixed(1)} MB`] : []),
    ...(opened > SPARE_FILES ? [`${opened} more files are open`] : []),
  ];
}

async function soak(t: TestContext): Promise<void> {
  const daemon = await startDaemon(t, tempDir(), ["--log-level", "error", "--rate-limit", "0"], HEAP);
  const { pid } = daemon.child;
  assert.equal((await daemon.call("POST", "/v1/apps", { app_name: "web" })).status, 201);
  const round = async (n: number): Promise<void> => {
    await Promise.all(Array.from({ length: CLIENTS }, (_, client) => live(daemon, `r${n}-c${client}`)));
  };
  await round(0);
  const base = descriptorsOf(pid);
  const samples: Sample[] = [];
  const began = performance.now();
  for (let n = 1; n <= ROUNDS || performance.now() - began < SOAK_MS; n++) {
    // The same names again and again, so that what is kept of an app stays as much as it was.
    await round(n % 10);
    await until("what a round had open is closed", () => descriptorsOf(pid) <= base + SPARE_FILES);
    samples.push({ at_ms: performance.now() - began, files: descriptorsOf(pid), memory_mb: memoryOf(pid) });
  }
  if (SOAK_MS > 0) assert.deepEqual(judge(samples), []);
  const [first, last] = [samples[0], samples.at(-1)];
  t.diagnostic(
    `${samples.length * CLIENTS} lives in ${((last?.at_ms ?? 0) / MINUTE).toFixed(1)} minutes; open files ${first?.files} and ${last?.files}, memory ${first?.memory_mb.toFixed(0)} and ${last?.memory_mb.toFixed(0)} MB`,
  );
}

suite("soak test", () => {
  test("memory and open files stay flat (O3)", soak);

  test("control: a slow leak is detected (O3)", () => {
    const row = (more: (n: number) => Partial<Sample>): Sample[] =>
      Array.from({ length: 90 }, (_, n) => ({ at_ms: n * MINUTE, files: 50, memory_mb: 100 + (n % 5), ...more(n) }));
    assert.deepEqual(judge(row(() => ({}))), []);
    assert.match(judge(row((n) => ({ memory_mb: 100 + n }))).join(), /memory grew by 30.0 MB/);
    assert.match(judge(row((n) => ({ files: 50 + n }))).join(), /30 more files/);
  });
});
