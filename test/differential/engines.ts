/** The engines of the differential test, all with the same samples: ours in this process, a peer in its own. */
import { systemClock } from "#core/clock.ts";
import { openMetricsEngine } from "#metrics/engine/engine.ts";
import { QueryFailure } from "#metrics/engine/worker-link.ts";
import type { Dialect } from "#metrics/promql/ast.ts";
import { ENGINES, read } from "../../bench/metrics/engines.ts";
import { type Answer, parseAnswer, refused } from "./answers.ts";
import type { Asked } from "./choices.ts";

interface Answering {
  ask(asked: Asked): Promise<Answer>;
  stop(): Promise<void>;
}

const ORG = "differential";
/** The data lies years back. */
const RETENTION_MS = 100 * 365 * 86_400_000;

export async function startOurs(dir: string, dialect: Dialect, bodies: readonly Buffer[]): Promise<Answering> {
  const engine = openMetricsEngine({ dir, clock: systemClock, limits: { retention_ms: RETENTION_MS } });
  try {
    // A body given to the engine is handed over to its thread; the peers need it too.
    for (const body of bodies) await engine.importRemoteWrite(ORG, Buffer.from(body));
  } catch (error) {
    await engine.close();
    throw error;
  }
  return {
    ask: async (asked) => {
      try {
        return parseAnswer(Buffer.from(await engine.query(ORG, { ...asked, dialect })).toString());
      } catch (error) {
        // Only a refusal is an answer; beside a peer's refusal a mistake of ours would look like agreement.
        if (!(error instanceof QueryFailure) || error.kind !== "QueryError") throw error;
        return refused(String(error));
      }
    },
    stop: () => engine.close(),
  };
}

export type Peer = "prometheus" | "victoria-metrics";

export async function startPeer(name: Peer, bodies: readonly Buffer[]): Promise<Answering> {
  const engine = await ENGINES[name]();
  try {
    for (const body of bodies) await write(`${engine.base}/api/v1/write`, body);
    // VictoriaMetrics shows new samples within a second, or when told to.
    if (name === "victoria-metrics") await read(`${engine.base}/internal/force_flush`);
  } catch (error) {
    await engine.stop();
    throw error;
  }
  return { ask: (asked) => askOverHttp(engine.base, asked), stop: () => engine.stop() };
}

async function write(url: string, body: Buffer): Promise<void> {
  const headers = { "content-encoding": "snappy", "x-prometheus-remote-write-version": "0.1.0" };
  const answer = await fetch(url, { method: "POST", headers, body: new Uint8Array(body) });
  if (!answer.ok) throw new Error(`${url}: ${answer.status} ${await answer.text()}`);
}

async function askOverHttp(base: string, { query, start_ms, end_ms, step_ms }: Asked): Promise<Answer> {
  const seconds = (ms: number): string => String(ms / 1000);
  const when: Record<string, string> =
    step_ms === undefined
      ? { time: seconds(end_ms) }
      : { start: seconds(start_ms), end: seconds(end_ms), step: seconds(step_ms) };
  const path = step_ms === undefined ? "query" : "query_range";
  // nocache: VictoriaMetrics moves start and end to multiples of the step when it may remember the answer.
  const body = new URLSearchParams({ query, ...when, nocache: "1" });
  const answer = await fetch(`${base}/api/v1/${path}`, { method: "POST", body });
  const text = await answer.text();
  return text.startsWith("{") ? parseAnswer(text) : refused(text);
}
