import { assert } from "#core/assert.ts";
import type { Clock } from "#core/clock.ts";
import { fail } from "#core/errors.ts";
import { orgOf } from "#http/access.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import type { MetricsEngine } from "../engine/engine.ts";
import { answering } from "../failures.ts";
import { selectorOf, timeOf } from "../params.ts";
import { type PushParts, PushReceiver } from "./receiver.ts";

const BASE = "/prometheus/:org_slug";
const PUSH = {
  part: "metrics",
  description:
    "Takes the right to write to the organization, or a machine of it: without a token over its socket or at the gateway, elsewhere with its identity token for the audience `<base URL>/prometheus`. Its samples get its labels. A sample that cannot be stored is 400, the others of its body are stored.",
  // The receiver checks it before it reads the body.
  access: "write org",
  by_machines: true,
  style: "prometheus",
  errors: ["rate_limited", "overloaded", "payload_too_large", "unsupported_media_type", "storage_full"],
  handle: async () => assert(false, "pushes answer by themselves"),
} as const;

export function pushRoutes(parts: PushParts & { engine(): MetricsEngine }): Row[] {
  const receiver = new PushReceiver(parts);
  const push = (
    path: `/${string}`,
    summary: string,
    relay: NonNullable<Row["relay"]>,
    response: Row["response"] = { status: 204 },
  ): Row => ({ ...PUSH, method: "POST", path, summary, relay, response });
  return [
    push(`${BASE}/api/v1/write`, "Remote write, version 1.0 or 2.0 by its Content-Type", receiver.remoteWrite),
    push(`${BASE}/api/v1/import`, "Import series as VictoriaMetrics' JSON lines", receiver.importJson),
    push(`${BASE}/api/v1/import/prometheus`, "Import series as Prometheus text", receiver.importPrometheus),
    ...["/opentelemetry/v1/metrics", "/api/v1/otlp/v1/metrics"].map((path) =>
      push(`${BASE}${path}`, "OTLP metrics over HTTP, protobuf or JSON", receiver.otlp, { status: 200, type: "*/*" }),
    ),
    exportRoute(parts),
  ];
}

/** Longest range of one export; a longer one takes several requests. */
const MOST_DAYS = 31;
const DAY_MS = 86_400_000;

/** What `match[]` selects, as JSON lines that `import` takes. */
function exportRoute({ engine, clock }: { engine(): MetricsEngine; clock: Clock }): Row {
  return route(`GET ${BASE}/api/v1/export`, {
    part: "metrics",
    access: "read org",
    scheme: "metrics",
    style: "prometheus",
    summary: "Export raw samples as JSON lines",
    query: Type.Object({
      "match[]": Type.Optional(Type.Array(Type.String())),
      start: Type.Optional(Type.String()),
      end: Type.Optional(Type.String()),
    }),
    response: { status: 200, type: "text/plain" },
    errors: ["query_invalid", "query_failed", "query_timeout", "query_canceled"],
    async handle({ query, signal, ...call }) {
      const end_ms = timeOf("end", query.end, clock.now());
      const start_ms = timeOf("start", query.start, end_ms - DAY_MS);
      if (!(start_ms < end_ms) || end_ms - start_ms > MOST_DAYS * DAY_MS)
        fail("invalid_request", `start lies before end, by at most ${MOST_DAYS} days; export a longer range in parts`);
      const texts = query["match[]"] ?? [];
      return await answering(async () => {
        if (!(await selectorOf(texts)))
          fail("invalid_request", 'match[] is required: a selector such as up{app="web"}');
        const lines = new Set<string>();
        for (const text of texts) {
          const window = `(${text})[${end_ms - start_ms + 1}ms]`.replace(/^\((.*)\)(\[.*)$/s, "$1$2");
          const bytes = await engine().query(
            orgOf(call).id,
            { query: window, start_ms: end_ms, end_ms, nocache: true },
            signal,
          );
          for (const line of linesOf(bytes)) lines.add(line);
        }
        return [...lines].map((line) => `${line}\n`).join("");
      });
    },
  });
}

interface Matrix {
  data: { result: { metric: Record<string, string>; values: [number, string][] }[] };
}

const WORDS: Record<string, string | null> = { NaN: null, "+Inf": "Infinity", "-Inf": "-Infinity" };

function linesOf(bytes: Uint8Array): string[] {
  const { data } = JSON.parse(new TextDecoder().decode(bytes)) as Matrix;
  return data.result.map(({ metric, values }) =>
    JSON.stringify({
      metric,
      values: values.map(([, text]) => (text in WORDS ? WORDS[text] : Number(text))),
      timestamps: values.map(([seconds]) => Math.round(seconds * 1000)),
    }),
  );
}
