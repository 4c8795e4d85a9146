import { executionError } from "../errors.ts";
import { column, isScalar, type Row, timesOf } from "../frame.ts";
import { labelsKey, NO_LABELS } from "../labels.ts";
import { parseNumber } from "../numbers.ts";
import {
  atLeast,
  between,
  type Call,
  constant,
  type Definition,
  exactly,
  mapColumns,
  pointwise,
  rowsOf,
  scalarOf,
} from "./apply.ts";
import { exponentials, normals, uniforms } from "./random.ts";
import { DATE_PARTS, dateValue, each, OF_ONE_NUMBER } from "./shared.ts";

/** Functions of values, one at a time. */

/** Half goes up, as Go and Prometheus round, and a step other than 1 loses no digits. */
function round(call: Call): Row[] {
  const nearest = call.args.length > 1 ? scalarOf(call, 1) : undefined;
  return mapColumns(call, rowsOf(call, 0), (values) => {
    for (let i = 0; i < values.length; i++)
      values[i] = roundTo(values[i] as number, nearest ? (nearest[i] as number) : 1);
  });
}

/** MetricsQL rounds to the nearest multiple and then to the digits the multiple has. */
function roundTo(value: number, nearest: number): number {
  const digits = decimals(nearest);
  const half = Math.sign(value) * 0.5 * nearest;
  const shifted = value + half;
  const floored = shifted - (shifted % nearest);
  const scale = 10 ** digits;
  return Math.trunc(floored * scale) / scale;
}

/** How many digits after the point a step such as 0.01 has. */
function decimals(step: number): number {
  const [mantissa = "", exponent = "0"] = Math.abs(step).toExponential().split("e");
  const fraction = mantissa.split(".")[1]?.length ?? 0;
  const digits = fraction - Number(exponent);
  return Number.isFinite(digits) ? Math.max(-20, Math.min(20, digits)) : 0;
}

// Both bounds may change from step to step.
function clamp(low: number | undefined, high: number | undefined): Definition {
  const args = 1 + (low === undefined ? 0 : 1) + (high === undefined ? 0 : 1);
  return exactly(args, (call) => {
    const lows = low === undefined ? undefined : scalarOf(call, low);
    const highs = high === undefined ? undefined : scalarOf(call, high);
    return mapColumns(call, rowsOf(call, 0), (values) => {
      for (let i = 0; i < values.length; i++) {
        const value = values[i] as number;
        if (highs && value > (highs[i] as number)) values[i] = highs[i] as number;
        else if (lows && value < (lows[i] as number)) values[i] = lows[i] as number;
      }
    });
  });
}

/** Whole numbers up to 64 bits, which is more than a double holds exactly; BigInt keeps the low ones right. */
function bitmap(change: (a: bigint, b: bigint) => bigint): Definition {
  return exactly(2, (call) => {
    const masks = scalarOf(call, 1);
    return mapColumns(call, rowsOf(call, 0), (values) => {
      for (let i = 0; i < values.length; i++) {
        const value = values[i] as number;
        const mask = masks[i] as number;
        const both = Number.isFinite(value) && Number.isFinite(mask);
        values[i] = both ? Number(change(BigInt(Math.trunc(value)), BigInt(Math.trunc(mask)))) : Number.NaN;
      }
    });
  });
}

function date(part: (date: Date) => number): Definition {
  return between(0, 1, (call) => {
    const rows = call.args.length === 0 ? [timeRow(call)] : rowsOf(call, 0);
    return mapColumns(call, rows, (values) => {
      for (let i = 0; i < values.length; i++) values[i] = dateValue(values[i] as number, part);
    });
  });
}

/** The moment of each step, in seconds. */
function timeRow(call: Call): Row {
  const values = timesOf(call.frame);
  for (let i = 0; i < values.length; i++) values[i] = (values[i] as number) / 1000;
  return { labels: NO_LABELS, values };
}

/** One number, or nothing when there are several series. */
function scalar(call: Call): Row[] {
  const [arg] = call.expr.args;
  if (arg?.kind === "string") {
    const value = parseNumber(arg.value.replace(/^-/, ""));
    if (value === undefined) return [];
    return [{ labels: NO_LABELS, values: column(call.frame, arg.value.startsWith("-") ? -value : value) }];
  }
  const rows = rowsOf(call, 0);
  const [row] = rows;
  if (!row || rows.length !== 1) return [{ labels: NO_LABELS, values: column(call.frame, Number.NaN) }];
  return [{ labels: NO_LABELS, values: row.values }];
}

function random(draw: (seed: number | undefined, count: number) => Float64Array): Definition {
  return between(0, 1, (call) => {
    const seed = call.args.length === 0 ? undefined : scalarOf(call, 0)[0];
    return [{ labels: NO_LABELS, values: draw(seed, call.frame.points) }];
  });
}

/** Where the frame's clock stands in a time zone, in seconds east of Greenwich. */
function timezoneOffset(call: Call): Row[] {
  const zone = call.args.length === 1 ? rowsOf(call, 0)[0]?.text : undefined;
  if (zone === undefined) throw executionError("the argument of timezone_offset() must be a string");
  let format: Intl.DateTimeFormat;
  try {
    // As in Go, no name is UTC and "Local" is where the program runs.
    const timeZone = zone === "" ? "UTC" : zone;
    const where = zone === "Local" ? {} : { timeZone };
    format = new Intl.DateTimeFormat("en-US", { ...where, timeZoneName: "longOffset" });
  } catch {
    throw executionError(`there is no time zone ${JSON.stringify(zone)}`);
  }
  const values = column(call.frame);
  const times = timesOf(call.frame);
  for (let i = 0; i < values.length; i++) {
    const name = format.formatToParts(times[i] as number).find((part) => part.type === "timeZoneName")?.value ?? "";
    const [, sign, hours = "0", minutes = "0", seconds = "0"] = /([+-])(\d+):(\d+)(?::(\d+))?/.exec(name) ?? [];
    const offset = Number(hours) * 3600 + Number(minutes) * 60 + Number(seconds);
    values[i] = sign === "-" ? -offset : offset;
  }
  return [{ labels: NO_LABELS, values }];
}

/** A list of numbers stays a list; otherwise series, each set of labels once. */
function union(call: Call): Row[] {
  if (call.args.length === 0) return [{ labels: NO_LABELS, values: column(call.frame, Number.NaN) }];
  if (call.args.every(isScalar)) return call.args.flat();
  const seen = new Set<string>();
  return call.args.flat().filter((row) => {
    const key = labelsKey(row.labels);
    return !seen.has(key) && seen.add(key);
  });
}

function absentColumn(call: Call, labels: Row["labels"]): Row[] {
  const values = column(call.frame, 1);
  for (const row of rowsOf(call, 0)) {
    for (let i = 0; i < values.length; i++) if (!Number.isNaN(row.values[i] as number)) values[i] = Number.NaN;
  }
  return [{ labels, values }];
}

/** Handed the labels from outside, because they come from the selector and not from the rows. */
export function absentDefinition(labelsOf: (call: Call) => Row["labels"]): Definition {
  return exactly(1, (call) => absentColumn(call, labelsOf(call)));
}

export const MATH: Record<string, Definition> = {
  "": atLeast(0, union),
  union: atLeast(0, union),
  bitmap_and: bitmap((a, b) => a & b),
  bitmap_or: bitmap((a, b) => a | b),
  bitmap_xor: bitmap((a, b) => a ^ b),
  clamp: clamp(1, 2),
  clamp_max: clamp(undefined, 1),
  clamp_min: clamp(1, undefined),
  end: constant((frame) => frame.end_ms / 1000),
  now: constant((frame) => frame.query.clock.now() / 1000),
  pi: constant(() => Math.PI),
  rand: random(uniforms),
  rand_exponential: random(exponentials),
  rand_normal: random(normals),
  round: between(1, 2, round),
  scalar: exactly(1, scalar),
  // Neither above nor below 0 is 0, and so is no value at all.
  sgn: pointwise((v) => (v > 0 ? 1 : v < 0 ? -1 : 0)),
  start: constant((frame) => frame.start_ms / 1000),
  step: constant((frame) => frame.step_ms / 1000),
  time: exactly(0, (call) => [timeRow(call)]),
  timezone_offset: exactly(1, timezoneOffset),
  vector: exactly(1, (call) => rowsOf(call, 0)),
  ...each(OF_ONE_NUMBER, pointwise),
  ...each(DATE_PARTS, date),
};
