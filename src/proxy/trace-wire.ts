/** OTLP traces in protobuf: an ExportTraceServiceRequest with one resource, the proxy. */

import { bytes, type Field, fixed64, integer, message, text } from "#core/protobuf.ts";
import { VERSION } from "#core/version.ts";
import type { Span, SpanAttributes } from "./plane/trace/span.ts";

const KINDS = { internal: 1, server: 2, client: 3 } as const;
const ERROR = 2;
/** An attribute's text beyond this is cut. */
const TEXT_CHARS = 500;

export function traceBody(spans: readonly Span[], { region, host_id }: { region: string; host_id: string }): Buffer {
  const resource = attributes(1, {
    "service.name": "hangar-proxy",
    "service.version": VERSION,
    "host.id": host_id,
    "cloud.region": region,
  });
  const scope = message(1, text(1, "hangar"), text(2, VERSION));
  const list = spans.map((span) => message(2, ...spanFields(span)));
  return Buffer.concat(message(1, message(1, ...resource), message(2, scope, ...list)) as Buffer[]);
}

function spanFields({ trace_id, span_id, parent_id, state, name, kind, ...span }: Span): Field[] {
  return [
    bytes(1, Buffer.from(trace_id, "hex")),
    bytes(2, Buffer.from(span_id, "hex")),
    text(3, state),
    ...(parent_id === undefined ? [] : [bytes(4, Buffer.from(parent_id, "hex"))]),
    text(5, name),
    integer(6, KINDS[kind]),
    fixed64(7, nanos(span.start_ms)),
    fixed64(8, nanos(span.end_ms)),
    ...attributes(9, span.attributes),
    ...(span.error === undefined ? [] : [message(15, text(2, span.error.slice(0, TEXT_CHARS)), integer(3, ERROR))]),
  ];
}

/** Microseconds are what the clock has. */
const nanos = (ms: number): bigint => BigInt(Math.round(ms * 1000)) * 1000n;

function attributes(number: number, all: SpanAttributes): Field[] {
  return Object.entries(all).flatMap(([key, value]) =>
    value === undefined ? [] : [message(number, text(1, key), message(2, anyValue(value)))],
  );
}

function anyValue(value: string | number | boolean): Field {
  if (typeof value === "number") return integer(3, value);
  if (typeof value === "boolean") return integer(2, value ? 1 : 0);
  // An empty text is a value, not an absent one.
  return value === "" ? [Buffer.from([0x0a, 0])] : text(1, value.slice(0, TEXT_CHARS));
}
