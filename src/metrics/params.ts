import { fail } from "#core/errors.ts";
import { durationMs } from "./promql/durations.ts";
import type { Matcher } from "./source.ts";

/** Parses a timestamp as Prometheus' clients write it: seconds with decimals, or RFC 3339. In milliseconds. */
export function timeOf(name: string, text: string | undefined, otherwise: number): number {
  if (text === undefined || text === "") return otherwise;
  const ms = /^-?[\d.]+(e[+-]?\d+)?$/i.test(text) ? Number(text) * 1000 : Date.parse(text);
  if (!Number.isFinite(ms)) bad(name, text, "seconds since 1970, or a time such as 2026-01-02T03:04:05Z");
  return Math.round(ms);
}

/** Parses a duration: seconds, or for example 5m. In milliseconds. */
export function stepOf(name: string, text: string | undefined): number | undefined {
  if (text === undefined || text === "") return undefined;
  const ms = /^[\d.]+(e[+-]?\d+)?$/i.test(text) ? Number(text) * 1000 : durationMs(text, 1);
  if (ms === undefined || !(ms > 0 && Number.isFinite(ms))) bad(name, text, "seconds, or a duration such as 15s or 5m");
  return ms;
}

/** `match[]`: any of these selectors; undefined when there is none. */
export async function selectorOf(texts: readonly string[] | undefined): Promise<Matcher[][] | undefined> {
  if (!texts || texts.length === 0) return undefined;
  // Loaded on first use: a platform without metrics queries needs no parser.
  const { parse } = await import("./promql/parse.ts");
  return texts.flatMap((text) => {
    const expr = parse(text, "metricsql");
    if (expr.kind !== "selector") fail("query_invalid", `match[] takes selectors such as up{app="web"}, not ${text}`);
    return expr.filters;
  });
}

/** Grafana encodes other names as `U__` with hex escapes; other text is returned unchanged. */
export function labelNameOf(text: string): string {
  if (!text.startsWith("U__")) return text;
  let isName = true;
  const name = text.slice(3).replaceAll(/_([0-9a-fA-F]{1,6})_|__/g, (_all, hex: string | undefined) => {
    const code = Number.parseInt(hex ?? "5f", 16);
    if (code > 0x10ffff) isName = false;
    return isName ? String.fromCodePoint(code) : "";
  });
  return isName ? name : text;
}

function bad(name: string, text: string, allowed: string): never {
  fail(
    "invalid_request",
    `invalid parameter ${JSON.stringify(name)}: ${JSON.stringify(text.slice(0, 100))} is not ${allowed}`,
  );
}
