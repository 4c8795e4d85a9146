/** The tables of docs/scale.md, from the figures that were recorded last: each area rewrites its own. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { withBlock } from "../scripts/readme-block.ts";
import { DOCS, type Measured } from "./record.ts";
import { digits, type Row } from "./report.ts";

const FILE = join(DOCS, "scale.md");

export function writeScalePage(measured: readonly Measured[]): void {
  writeFileSync(FILE, scalePage(readFileSync(FILE, "utf8"), measured));
}

/** The page with the tables of these figures. Exported for the test that compares it with what is there. */
export function scalePage(page: string, measured: readonly Measured[]): string {
  return BLOCKS.reduce((text, { name, area, command, table }) => {
    const found = measured.find((one) => one.area === area);
    return withBlock(
      text,
      name,
      found ? [measuredOn(found, command), "", ...table(found.figures), ""] : [missing(command)],
    );
  }, page);
}

interface Block {
  name: string;
  area: string;
  command: string;
  table(figures: readonly Row[]): string[];
}

const AT_REST = /^(\d+) machines at rest$/;

const BLOCKS: readonly Block[] = [
  {
    name: "machines at rest",
    area: "scale",
    command: "npm run bench scale",
    table: (figures) => bySize(figures.filter(({ section }) => AT_REST.test(section))),
  },
  {
    name: "mixed load",
    area: "scale",
    command: "npm run bench scale",
    table: (figures) => sections(figures.filter(({ section }) => /^(growth|mixed load)/.test(section))),
  },
  {
    name: "running machines",
    area: "memory",
    command: "npm run bench memory -- --machines 10000",
    table: (figures) => sections(figures),
  },
  {
    name: "one PostgreSQL",
    area: "database",
    command: "npm run bench database",
    table: (figures) => sections(figures),
  },
  { name: "several hosts", area: "hosts", command: "npm run bench hosts", table: (figures) => sections(figures) },
];

const recording = (command: string): string => `\`${command}${command.includes(" -- ") ? "" : " --"} --record\``;

const measuredOn = ({ date, machine }: Measured, command: string): string =>
  `${recording(command)}, ${date}: ${machine["cores"]} cores, load ${digits(Number(machine["load_1min"]))} when it began.`;

const missing = (command: string): string => `Not recorded yet: ${recording(command)}.`;

/** A column for each size. */
function bySize(figures: readonly Row[]): string[] {
  const bySection = [...Map.groupBy(figures, ({ section }) => Number(AT_REST.exec(section)?.[1]))];
  const [least] = bySection;
  const named = (what: string, of: number): string => what.replace(` at ${of} machines`, "");
  const value = (of: number, rows: readonly Row[], what: string): string => {
    const row = rows.find((one) => named(one.what, of) === what);
    return row ? shown(row) : "";
  };
  const whats = least?.[1].map(({ what }) => named(what, least[0])) ?? [];
  return [
    `| machines at rest | ${bySection.map(([of]) => of.toLocaleString("en")).join(" | ")} |`,
    `| --- |${" ---: |".repeat(bySection.length)}`,
    ...whats.map((what) => `| ${what} | ${bySection.map(([of, rows]) => value(of, rows, what)).join(" | ")} |`),
  ];
}

function sections(figures: readonly Row[]): string[] {
  const rows = figures.flatMap((row, index) => [
    ...(figures[index - 1]?.section === row.section ? [] : [`| **${row.section}** | |`]),
    `| ${row.what} | ${shown(row)} |`,
  ]);
  return ["| measurement | figure |", "| --- | ---: |", ...rows];
}

function shown({ value, unit, at_most, at_least }: Row): string {
  const target = at_most === undefined ? at_least && `at least ${digits(at_least)}` : `at most ${digits(at_most)}`;
  return `${digits(value)} ${unit}`.trim() + (target ? ` (${target})` : "");
}
