/** Answers of the query API, and what differs between two of them. */

export interface Answer {
  /** Why it was refused; then there is nothing else. */
  error?: string;
  /** vector, matrix, scalar or string; a scalar is one series without labels. */
  type: string;
  /** Labels as JSON, sorted by name → time in seconds → value. In the order of the answer. */
  series: Map<string, Map<number, number | string>>;
}

interface ApiAnswer {
  status: string;
  error?: string;
  data?: { resultType: string; result: unknown };
}

type Point = [time: number, value: string];

interface ApiSeries {
  metric: Record<string, string>;
  value?: Point;
  values?: Point[];
}

const INFINITE: Record<string, number> = { "+Inf": Number.POSITIVE_INFINITY, "-Inf": Number.NEGATIVE_INFINITY };

const numberOf = (text: string): number => INFINITE[text] ?? Number(text);

export function refused(error: string): Answer {
  return { error, type: "error", series: new Map() };
}

export function parseAnswer(body: string): Answer {
  const { error, data } = JSON.parse(body) as ApiAnswer;
  if (!data) return refused(error ?? "no reason given");
  const { resultType: type, result } = data;
  if (type === "scalar" || type === "string") {
    const [time, value] = result as Point;
    return { type, series: new Map([["{}", new Map([[time, type === "scalar" ? numberOf(value) : value]])]]) };
  }
  const series: Answer["series"] = new Map();
  for (const { metric, value, values } of result as ApiSeries[]) {
    const points = values ?? (value ? [value] : []);
    series.set(keyOf(metric), new Map(points.map(([time, text]) => [time, numberOf(text)])));
  }
  return { type, series };
}

function keyOf(metric: Record<string, string>): string {
  return JSON.stringify(Object.fromEntries(Object.entries(metric).sort(([a], [b]) => (a < b ? -1 : 1))));
}

/** A place where two answers differ; undefined is "no point here". */
interface OtherValue {
  labels: string;
  time: number;
  ours: number | string | undefined;
  theirs: number | string | undefined;
}

/** Everything that differs; of what does not, a list is empty and anything else absent. */
export interface Difference {
  errors?: { ours: string | undefined; theirs: string | undefined };
  types?: { ours: string; theirs: string };
  /** Series only one of them has. */
  onlyOurs: string[];
  onlyTheirs: string[];
  values: OtherValue[];
  order?: { ours: string[]; theirs: string[] };
}

const TOLERANCE = 1e-9;

export function isClose(a: number, b: number, tolerance = TOLERANCE): boolean {
  if (Object.is(a, b) || a === b) return true;
  return Math.abs(a - b) <= tolerance * Math.max(Math.abs(a), Math.abs(b));
}

function isSame(a: number | string | undefined, b: number | string | undefined): boolean {
  return typeof a === "number" && typeof b === "number" ? isClose(a, b) : a === b;
}

/** What differs, or undefined. The order counts where the query promises one. */
export function compare(ours: Answer, theirs: Answer, ordered: boolean): Difference | undefined {
  const found: Difference = { onlyOurs: [], onlyTheirs: [], values: [] };
  if (ours.error !== undefined || theirs.error !== undefined) {
    if (ours.error !== undefined && theirs.error !== undefined) return undefined;
    return { ...found, errors: { ours: ours.error, theirs: theirs.error } };
  }
  if (ours.type !== theirs.type) return { ...found, types: { ours: ours.type, theirs: theirs.type } };
  found.onlyOurs = [...ours.series.keys()].filter((labels) => !theirs.series.has(labels));
  found.onlyTheirs = [...theirs.series.keys()].filter((labels) => !ours.series.has(labels));
  for (const [labels, points] of ours.series) {
    const others = theirs.series.get(labels);
    if (others) found.values.push(...otherValues(labels, points, others));
  }
  if (found.onlyOurs.length + found.onlyTheirs.length + found.values.length > 0) return found;
  const order = { ours: [...ours.series.keys()], theirs: [...theirs.series.keys()] };
  if (!ordered || isSameOrder(ours, order)) return undefined;
  return { ...found, order };
}

type Points = Map<number, number | string>;

function otherValues(labels: string, ours: Points, theirs: Points): OtherValue[] {
  return [...new Set([...ours.keys(), ...theirs.keys()])]
    .map((time) => ({ labels, time, ours: ours.get(time), theirs: theirs.get(time) }))
    .filter((point) => !isSame(point.ours, point.theirs));
}

/** Series of the same value may change places. */
function isSameOrder({ series }: Answer, { ours, theirs }: { ours: string[]; theirs: string[] }): boolean {
  const textOf = (labels: string): string => JSON.stringify([...(series.get(labels)?.values() ?? [])].map(String));
  return ours.every((labels, i) => labels === theirs[i] || textOf(labels) === textOf(theirs[i] ?? ""));
}

const SHOWN = 3;

/** A short description of the difference, for debugging. */
export function describe(difference: Difference): string {
  const { errors, types, onlyOurs, onlyTheirs, values, order } = difference;
  const lines: string[] = [];
  if (errors) lines.push(`ours: ${errors.ours ?? "answered"}`, `theirs: ${errors.theirs ?? "answered"}`);
  if (types) lines.push(`ours is a ${types.ours}, theirs a ${types.theirs}`);
  if (onlyOurs.length > 0) lines.push(`only ours (${onlyOurs.length}): ${onlyOurs.slice(0, SHOWN).join(" ")}`);
  if (onlyTheirs.length > 0) lines.push(`only theirs (${onlyTheirs.length}): ${onlyTheirs.slice(0, SHOWN).join(" ")}`);
  for (const { labels, time, ours, theirs } of values.slice(0, SHOWN)) {
    lines.push(`${labels} at ${time}: ours ${ours ?? "nothing"}, theirs ${theirs ?? "nothing"}`);
  }
  if (values.length > SHOWN) lines.push(`and ${values.length - SHOWN} more values`);
  if (order) lines.push(`order: ours ${order.ours.join(" ")}`, `theirs ${order.theirs.join(" ")}`);
  return lines.map((line) => `    ${line}`).join("\n");
}

/** The beginning of an answer. */
export function show({ error, type, series }: Answer): string {
  if (error !== undefined) return error;
  const shown = [...series].slice(0, SHOWN).map(([labels, points]) => {
    const values = [...points].slice(0, SHOWN).map(([time, value]) => `${value} at ${time}`);
    return `${labels} ${values.join(", ")}${points.size > SHOWN ? ", …" : ""}`;
  });
  return `${type} of ${series.size} series: ${shown.join("; ")}`;
}
