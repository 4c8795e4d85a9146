import { type ExpositionOptions, importExposition } from "./exposition.ts";
import type { Importer, ImportResult } from "./importer.ts";
import { importMetricFamilies } from "./metric-families.ts";

/** Stores a response of a target, in whichever format it is. Throws BadWire when it is none. */
export function importScraped(importer: Importer, bytes: Uint8Array, options: ExpositionOptions): ImportResult {
  return (options.format === "protobuf" ? importMetricFamilies : importExposition)(importer, bytes, options);
}
