import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { button, div, h, li, ol, span } from "../html.ts";
import { card, showMessage, useAnswer, when } from "../parts/basics.ts";
import { Chart } from "../parts/chart.ts";
import { choices, useRounds } from "../parts/controls.ts";
import { bytes, exactTime } from "../parts/format.ts";
import { queryRange, type Range } from "../prometheus.ts";

const DAY_S = 86_400;
const SPANS = [
  ["1 h", 3600],
  ["24 h", DAY_S],
  ["7 days", 7 * DAY_S],
  ["30 days", 30 * DAY_S],
] as const;
const EVERY_MS = 30_000;

/** Interval at which volumes are measured. */
const SAMPLE_S = 15;
const STEPS = 240;

/** The shortest span that covers the volume's life. */
function spanFor(created_at: string): number {
  const age_s = (Date.now() - Date.parse(created_at)) / 1000;
  return SPANS.find(([, seconds]) => seconds >= age_s)?.[1] ?? 30 * DAY_S;
}

/** Until now and not until the last whole step, which a new volume has not reached. */
function rangeOf(seconds: number): Range {
  const end = Math.floor(Date.now() / 1000 / SAMPLE_S) * SAMPLE_S;
  return { start: end - seconds, end, step: Math.max(SAMPLE_S, seconds / STEPS) };
}

export interface Snapshot {
  id: string;
  created_at: string;
  size: number;
  status: string;
}

interface Props {
  volume: { id: string; created_at: string };
  snapshots: readonly Snapshot[];
  /** Undefined for a token that may not. */
  onRestore?: (snapshot: Snapshot) => Promise<void>;
}

/** Used and total bytes over time, and the snapshots on a line below with the same axis. */
export function VolumeUsage({ volume, snapshots, onRestore }: Props): VNode {
  const [seconds, setSeconds] = useState<number>(() => spanFor(volume.created_at));
  const round = useRounds(EVERY_MS);
  const answer = useAnswer(
    async (signal) => {
      const range = rangeOf(seconds);
      const selector = `{id=${JSON.stringify(volume.id)}}`;
      const [used = [], total = []] = await Promise.all(
        [
          `max(svc_volume_size_bytes${selector} * on (id) svc_volume_used_pct${selector} / 100)`,
          `max(svc_volume_size_bytes${selector})`,
        ].map((query) => queryRange(query, range, signal)),
      );
      const line = (name: string, series: typeof used) => series.map((one) => ({ ...one, labels: { line: name } }));
      return { range, series: [...line("used", used), ...line("size", total)] };
    },
    [volume.id, seconds, round],
  );
  return card(
    "Usage",
    choices<number>({ class: "filters", label: "Time range" }, SPANS, seconds, setSeconds),
    when(answer, ({ range, series }) =>
      div(
        h(Chart, { title: "Bytes", series, range, format: bytes, nameOf: ({ labels }) => labels["line"] ?? "" }),
        h(SnapshotLine, { range, snapshots, ...(onRestore ? { onRestore } : {}) }),
      ),
    ),
  );
}

/** A point per snapshot taken within the range. */
function SnapshotLine({ range, snapshots, onRestore }: Omit<Props, "volume"> & { range: Range }): VNode | null {
  const within = snapshots
    .map((snapshot) => ({
      snapshot,
      at: (Date.parse(snapshot.created_at) / 1000 - range.start) / (range.end - range.start),
    }))
    // One taken since the last sample lies beyond the end of the range.
    .filter(({ at }) => at >= 0)
    .map(({ snapshot, at }) => ({ snapshot, left: `${(Math.min(at, 1) * 100).toFixed(2)}%` }));
  if (within.length === 0) return null;
  return div(
    { class: "snapshot-line" },
    span({ class: "dim" }, "snapshots"),
    ol(
      { "aria-label": "Snapshots in this time" },
      ...within.map(({ snapshot, left }) => li({ key: snapshot.id, style: { left } }, point(snapshot, onRestore))),
    ),
  );
}

function point(snapshot: Snapshot, onRestore: Props["onRestore"]): VNode {
  const text = `${exactTime(Date.parse(snapshot.created_at))}, ${bytes(snapshot.size)}, ${snapshot.status}`;
  if (!onRestore) return span({ class: "point", title: text, role: "img", "aria-label": text });
  const restore = (): void =>
    void onRestore(snapshot).catch((thrown: unknown) => showMessage("Restore failed", thrown));
  return button({
    type: "button",
    class: "point",
    title: `${text}: restore`,
    "aria-label": `Restore ${text}`,
    onClick: restore,
  });
}
