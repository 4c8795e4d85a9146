/** docs/PERFORMANCE.md: the latest figures of every area and its peers. */
import type { Measured } from "./record.ts";
import { digits, type Row } from "./report.ts";
import { topLines } from "./top.ts";

const HEAD = `# Benchmarks

Written by \`npm run bench all\` (or \`npm run bench AREA -- --record\`); do not edit. Absolute figures depend on the box;
ratios to peers measured in the same run depend on it much less. Green bars are better than the peer, orange bars worse.

    npm run bench all                 # all benchmarks; writes this page
    npm run bench compare             # runs them again, fails if a ratio got worse by more than a fifth
    npm run bench AREA… [-- --json]   # some of them, printed only
`;

export function performancePage(measured: readonly Measured[], plots: ReadonlySet<string>): string {
  const areas = measured.map((one) => section(one, plots.has(one.area)));
  return [HEAD, `${summary(measured)}\n`, ...areas].join("\n");
}

function summary(measured: readonly Measured[]): string {
  const aimed = measured.flatMap(({ figures }) => figures).filter(({ met }) => met !== undefined);
  return `${aimed.filter(({ met }) => met).length} of ${aimed.length} targets met.`;
}

/** The first line of the page and what people compare, for README.md. */
export const performanceTop = (measured: readonly Measured[]): string[] => [
  `Benchmarks next to comparable software ([docs/PERFORMANCE.md](docs/PERFORMANCE.md)). ${summary(measured)}`,
  "",
  "| benchmark | result |",
  "|---|---|",
  ...topLines(measured),
];

function section({ area, date, machine, figures, skipped }: Measured, plotted: boolean): string {
  const box = Object.entries(machine).map(([name, value]) => `${name} ${value}`);
  const rows = figures.map((row, index) => {
    const title = figures[index - 1]?.section === row.section ? "" : `| **${cell(row.section)}** | | | |\n`;
    return `${title}| ${cell(row.what)} | ${digits(row.value)} ${row.unit} | ${ratio(row)} | ${cell(remarks(row))} |`;
  });
  const left = skipped.map(({ what, reason }) => `- Not measured: ${what}, ${reason}`);
  return [
    `## ${area}\n`,
    `${date}; ${box.join(", ")}.\n`,
    ...(plotted ? [`![${area}: ratios to peers](performance/${area}.svg)\n`] : []),
    "| | | | |\n| --- | ---: | ---: | --- |",
    `${rows.join("\n")}\n`,
    ...(left.length > 0 ? [`${left.join("\n")}\n`] : []),
  ].join("\n");
}

const ratio = ({ ratio: times, to }: Row): string =>
  times === undefined ? "" : `${digits(times)} × ${cell(to ?? "")}`;

function remarks({ met, at_least, at_most, note }: Row): string {
  const target = at_least === undefined ? `at most ${at_most}` : `at least ${at_least}`;
  return [met === undefined ? "" : `${met ? "met" : "**missed**"}: ${target}`, note ?? ""].filter(Boolean).join("; ");
}

const cell = (text: string): string => text.replaceAll("|", "\\|");
