/** VictoriaMetrics' JSON lines: `{"metric":{…},"values":[…],"timestamps":[…]}`, one series on each. */
import { fail } from "#core/errors.ts";
import { type OwnLabels, PushedSamples } from "./samples.ts";

const WORDS: Record<string, number> = {
  NaN: Number.NaN,
  Infinity: Number.POSITIVE_INFINITY,
  "+Inf": Number.POSITIVE_INFINITY,
  Inf: Number.POSITIVE_INFINITY,
  "-Infinity": Number.NEGATIVE_INFINITY,
  "-Inf": Number.NEGATIVE_INFINITY,
};

export function decodeJsonLines(body: Uint8Array, own?: OwnLabels): PushedSamples {
  const samples = new PushedSamples(own);
  let line = 0;
  for (const text of Buffer.from(body.buffer, body.byteOffset, body.length).toString("utf8").split("\n")) {
    line++;
    if (text.trim() !== "") readLine(text, line, samples);
  }
  return samples;
}

function readLine(text: string, line: number, samples: PushedSamples): void {
  const bad = (what: string): never => fail("invalid_request", `line ${line}: ${what}`);
  let parsed: unknown;
  try {
    parsed = JSON.parse(text);
  } catch {
    bad("it is not JSON");
  }
  const { metric, values, timestamps } = (parsed ?? {}) as Record<string, unknown>;
  if (!Array.isArray(values) || !Array.isArray(timestamps) || values.length !== timestamps.length)
    bad("values and timestamps must be lists of the same length");
  const add = samples.series(labelsOf(metric) ?? bad("metric must be a table of texts with a __name__"));
  for (const [at, value] of (values as unknown[]).entries()) {
    const time = (timestamps as unknown[])[at];
    const number = value === null ? Number.NaN : typeof value === "string" ? WORDS[value] : value;
    if (typeof number !== "number" || !Number.isSafeInteger(time))
      bad(`value ${at + 1} is no number, or its time is not in milliseconds`);
    add(time as number, number as number);
  }
}

function labelsOf(metric: unknown): Record<string, string> | undefined {
  if (typeof metric !== "object" || metric === null || Array.isArray(metric)) return undefined;
  const pairs = Object.entries(metric);
  const isGood = pairs.every(([, value]) => typeof value === "string") && pairs.some(([name]) => name === "__name__");
  return isGood ? (Object.fromEntries(pairs) as Record<string, string>) : undefined;
}
