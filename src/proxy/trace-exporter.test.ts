import assert from "node:assert/strict";
import { suite, type TestContext, test } from "node:test";
import { systemClock } from "#core/clock.ts";
import type { Log } from "#core/log.ts";
import { aBackend } from "./fixtures.ts";
import { PROXY_LIMITS } from "./limits.ts";
import type { Span } from "./plane/trace/span.ts";
import { TraceExporter } from "./trace-exporter.ts";

const span: Span = {
  trace_id: "1".repeat(32),
  span_id: "2".repeat(16),
  parent_id: undefined,
  state: "",
  name: "GET",
  kind: "server",
  start_ms: 1,
  end_ms: 2,
  attributes: {},
  error: undefined,
};

/** A receiver that answers with these statuses, then 200; and an exporter to it whose pauses take no time. */
async function anExporter(t: TestContext, statuses: number[], { onRequest = () => {}, onPause = () => {} } = {}) {
  const seen: string[] = [];
  const { port } = await aBackend(t, (request, response) => {
    request.resume();
    request.on("end", () => {
      seen.push(String(request.headers["x-scope"]));
      onRequest();
      response.writeHead(statuses.shift() ?? 200).end();
    });
  });
  const url = new URL(`http://127.0.0.1:${port}/v1/traces`);
  const exporter = new TraceExporter({
    setting: { url, headers: { "x-scope": "one" }, ratio: 1 },
    region: "local",
    host_id: "h",
    clock: {
      ...systemClock,
      sleep(_ms, signal) {
        onPause();
        return systemClock.sleep(1, signal);
      },
    },
    log: { warn() {} } as unknown as Log,
  });
  exporter.start();
  t.after(() => exporter.close());
  const settled = async (): Promise<void> => {
    while (exporter.counts.exported + exporter.counts.dropped === 0)
      await new Promise((resolve) => setImmediate(resolve));
  };
  return { exporter, seen, settled };
}

suite("export of traces", () => {
  test("a batch that the receiver cannot take now is sent again, with the configured headers", async (t) => {
    const { exporter, seen, settled } = await anExporter(t, [503, 429]);
    exporter.add([span, span], 0);
    await settled();
    assert.deepEqual([exporter.counts, seen], [{ exported: 2, dropped: 0 }, ["one", "one", "one"]]);
  });

  test("a batch that the receiver refuses is dropped and counted", async (t) => {
    const { exporter, seen, settled } = await anExporter(t, [400]);
    exporter.add([span], 0);
    await settled();
    assert.deepEqual([exporter.counts, seen.length], [{ exported: 0, dropped: 1 }, 1]);
  });

  test("more than spans_queued are dropped and counted, with those that workers dropped", async (t) => {
    const { exporter } = await anExporter(t, []);
    exporter.add(Array(PROXY_LIMITS.spans_queued + 3).fill(span) as Span[], 4);
    assert.equal(exporter.counts.dropped, 7);
  });

  test("while a batch waits to be sent again, the queue takes what fits and counts the rest once", async (t) => {
    const { promise: again, resolve } = Promise.withResolvers<number>();
    const [full, batch] = [PROXY_LIMITS.spans_queued, PROXY_LIMITS.spans_sent].map(
      (size) => Array(size).fill(span) as Span[],
    );
    let exporter: TraceExporter | undefined;
    let requests = 0;
    const opened = await anExporter(t, Array(20).fill(503) as number[], {
      // The place of the batch that is being sent is taken before it comes back.
      onRequest: () => void (requests++ === 0 && exporter?.add(batch ?? [], 0)),
      onPause() {
        if (requests !== 1 || !exporter) return;
        const before = exporter.counts.dropped;
        exporter.add([span, span], 0);
        resolve(exporter.counts.dropped - before);
      },
    });
    exporter = opened.exporter;
    exporter.add(full ?? [], 0);
    assert.equal(await again, 2);
  });
});
