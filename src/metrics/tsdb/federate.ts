import { isStale, type Labels, type Matcher, type SampleSource } from "../source.ts";
import { formatNumber } from "./ingest/number-text.ts";

const PLAIN_METRIC = /^[a-zA-Z_:][a-zA-Z0-9_:]*$/;
const PLAIN_LABEL = /^[a-zA-Z_][a-zA-Z0-9_]*$/;

/** The newest sample of every matching series not older than `lookback_ms`, as Prometheus text. */
export function federate(
  source: SampleSource,
  selector: readonly (readonly Matcher[])[],
  at_ms: number,
  lookback_ms: number,
): string {
  const lines: { name: string; line: string }[] = [];
  const after_ms = at_ms - lookback_ms;
  for (const series of source.select({ selector, start_ms: after_ms + 1, end_ms: at_ms })) {
    const newest = series.newest(after_ms, at_ms);
    if (!newest || isStale(newest.value)) continue;
    const { name, key } = seriesText(series.labels);
    lines.push({ name, line: `${key} ${formatNumber(newest.value)} ${newest.timestamp}\n` });
  }
  lines.sort((a, b) => (a.name < b.name ? -1 : a.name > b.name ? 1 : a.line < b.line ? -1 : 1));
  let text = "";
  let before: string | undefined;
  for (const { name, line } of lines) {
    if (name !== before && PLAIN_METRIC.test(name)) text += `# TYPE ${name} untyped\n`;
    text += line;
    before = name;
  }
  return text;
}

/** `name{label="value"}`; a name that is not plain goes into the braces, quoted. */
function seriesText(labels: Labels): { name: string; key: string } {
  let name = "";
  const pairs: string[] = [];
  for (let i = 0; i < labels.length; i += 2) {
    const label = labels[i] ?? "";
    const value = labels[i + 1] ?? "";
    if (label === "__name__") name = value;
    else pairs.push(`${PLAIN_LABEL.test(label) ? label : quote(label)}=${quote(value)}`);
  }
  if (!PLAIN_METRIC.test(name)) return { name, key: `{${[quote(name), ...pairs].join(",")}}` };
  return { name, key: pairs.length === 0 ? name : `${name}{${pairs.join(",")}}` };
}

function quote(text: string): string {
  return `"${text.replaceAll("\\", "\\\\").replaceAll("\n", "\\n").replaceAll('"', '\\"')}"`;
}
