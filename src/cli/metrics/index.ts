import type { Verb } from "../verb.ts";
import { metricsCardinality, metricsTargets } from "./about.ts";
import { metricsQuery, metricsRange, metricsSeries, metricsTop } from "./verbs.ts";

export const VERBS: readonly Verb[] = [
  metricsTop,
  metricsQuery,
  metricsRange,
  metricsSeries,
  metricsTargets,
  metricsCardinality,
];
