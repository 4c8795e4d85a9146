/** The benchmark table in README.md. */
import type { Measured } from "./record.ts";
import { digits, type Row } from "./report.ts";

interface TopLine {
  says: string;
  area: string;
  /** How its section begins. */
  section: string;
  what: string;
  shown(row: Row): string;
}

const times =
  (whose: string) =>
  ({ value, ratio }: Row): string =>
    `${digits(ratio ?? value)} × ${whose}`;

export const TOP_LINES: readonly TopLine[] = [
  {
    says: "A machine, from the request to its running process",
    area: "runtime",
    section: "targets of a start",
    what: "Hangar ÷ the fastest other engine",
    shown: times("the time of the fastest of containerd, Podman and Docker"),
  },
  {
    says: "A Node server, resumed with its memory",
    area: "runtime",
    section: "suspend and resume",
    what: "resume, p50",
    shown: ({ value, unit }) => `${digits(value)} ${unit}`,
  },
  {
    says: "A request through the edge proxy, over TLS",
    area: "proxy",
    section: "small answers, TLS",
    what: "… of caddy's in the same round",
    shown: times("Caddy's CPU time"),
  },
  {
    says: "A list of 200 machines",
    area: "machines",
    section: "list of 200",
    what: "hangar",
    shown: times("Docker's responses per CPU second"),
  },
  {
    says: "Sample ingestion",
    area: "metrics",
    section: "ingest",
    what: "hangar",
    shown: times("VictoriaMetrics' samples per CPU second"),
  },
  {
    says: "A sample on disk",
    area: "metrics",
    section: "disk with index",
    what: "hangar",
    shown: times("VictoriaMetrics' bytes"),
  },
  {
    says: "A sample scraped",
    area: "scrape",
    section: "1000 targets",
    what: "hangar",
    shown: times("Prometheus' CPU time"),
  },
  {
    says: "Durable transactions of a replicated SQLite, one replica",
    area: "replication",
    section: "synchronous=FULL, replicas: 1",
    what: "unlimited: written",
    shown: ({ value, unit, note }) => `${digits(value)} ${unit}; on a box like this, ${note?.split(" tx/s")[0]}`,
  },
];

/** A line for each that was measured. */
export function topLines(measured: readonly Measured[]): string[] {
  return TOP_LINES.flatMap(({ says, area, section, what, shown }) => {
    const figures = measured.find((one) => one.area === area)?.figures ?? [];
    const row = figures.find((one) => one.section.startsWith(section) && one.what === what);
    return row ? [`| ${says} | ${shown(row)} |`] : [];
  });
}
