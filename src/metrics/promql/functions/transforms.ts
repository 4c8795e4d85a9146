import { absentLabels } from "../rollup/evaluate.ts";
import type { Definition } from "./apply.ts";
import { HISTOGRAM_FUNCTIONS } from "./histograms.ts";
import { LABEL_FUNCTIONS } from "./label-functions.ts";
import { absentDefinition, MATH } from "./math.ts";
import { RANGE_FUNCTIONS } from "./range-functions.ts";
import { SORTING } from "./sorting.ts";

/** Every transform function of MetricsQL by name. */
export const TRANSFORM_FUNCTIONS: Readonly<Record<string, Definition>> = {
  ...MATH,
  ...LABEL_FUNCTIONS,
  ...RANGE_FUNCTIONS,
  ...HISTOGRAM_FUNCTIONS,
  ...SORTING,
  absent: absentDefinition((call) => absentLabels(call.expr.args[0])),
};
