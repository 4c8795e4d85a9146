import type { Labels } from "../../source.ts";
import { ByteWriter } from "../bytes.ts";
import type { TsdbLimits } from "../limits.ts";

export type LabelLimits = Pick<TsdbLimits, "labels_per_series" | "label_name_bytes" | "label_value_bytes">;

/** A series has labels that cannot be stored; the message is for the sender. */
export class BadLabels extends Error {
  override readonly name = "BadLabels";
}

/**
 * Labels as they are stored: sorted by name, none empty, none twice, within the limits. `added` are the
 * platform's own and override those of the sender, so that no sender can write as another.
 */
export function storedLabels(pairs: readonly [string, string][], added: Labels, limits: LabelLimits): Labels {
  const byName = new Map<string, string>();
  for (const [name, value] of pairs) {
    if (byName.has(name)) throw new BadLabels(`label ${show(name)} is given twice`);
    byName.set(name, value);
  }
  for (let i = 0; i < added.length; i += 2) byName.set(added[i] ?? "", added[i + 1] ?? "");
  if (!byName.get("__name__")) throw new BadLabels("the series has no name");
  const labels = [...byName].filter(([, value]) => value !== "");
  if (labels.length > limits.labels_per_series) {
    throw new BadLabels(`${labels.length} labels are more than ${limits.labels_per_series} (labels_per_series)`);
  }
  for (const [name, value] of labels) checkSizes(name, value, limits);
  // Compared by UTF-16 units, as everywhere here: what matters is that it is always the same order.
  return labels.sort(([a], [b]) => (a < b ? -1 : 1)).flat();
}

function checkSizes(name: string, value: string, limits: LabelLimits): void {
  if (name === "") throw new BadLabels("a label has no name");
  // A UTF-16 unit is at most three bytes, so short texts need no counting.
  if (name.length * 3 > limits.label_name_bytes && Buffer.byteLength(name) > limits.label_name_bytes) {
    throw new BadLabels(`label name ${show(name)} is longer than ${limits.label_name_bytes} bytes (label_name_bytes)`);
  }
  if (value.length * 3 > limits.label_value_bytes && Buffer.byteLength(value) > limits.label_value_bytes) {
    throw new BadLabels(
      `the value of label ${show(name)} is longer than ${limits.label_value_bytes} bytes (label_value_bytes)`,
    );
  }
}

/** A hostile name must not fill the answer. */
function show(name: string): string {
  return JSON.stringify(name.length > 60 ? `${name.slice(0, 60)}…` : name);
}

/** The value, or the empty string when the label is absent. */
export function labelValue(labels: Labels, name: string): string {
  for (let i = 0; i < labels.length; i += 2) if (labels[i] === name) return labels[i + 1] ?? "";
  return "";
}

const FIELD_LABEL = 0x0a;
const FIELD_NAME = 0x0a;
const FIELD_VALUE = 0x12;

/** Labels as remote write spells them: also how our own senders name a series, see SeriesBatch. */
export function encodeLabels(labels: Labels): Uint8Array {
  const out = new ByteWriter(labels.length * 24);
  const label = new ByteWriter(64);
  for (let i = 0; i < labels.length; i += 2) {
    label.reset();
    label.byte(FIELD_NAME);
    label.text(labels[i] ?? "");
    label.byte(FIELD_VALUE);
    label.text(labels[i + 1] ?? "");
    out.byte(FIELD_LABEL);
    out.varint(label.at);
    out.raw(label.view());
  }
  return out.view().slice();
}
