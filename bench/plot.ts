/** The ratios of an area as a picture: a bar from 1 to the left or to the right, one step for each doubling. */
import { wantsLess } from "./record.ts";
import { digits, type Row } from "./report.ts";

const LABEL = 430;
const STEP = 44;
/** Doublings to each side; what is further away ends at the edge. */
const REACH = 4;
const LINE = 22;
const WIDTH = LABEL + 2 * REACH * STEP + 190;

type Ratio = Row & { ratio: number };

export function plot(title: string, rows: readonly Row[]): string | undefined {
  const ratios = rows.filter((row): row is Ratio => row.ratio !== undefined && Number.isFinite(row.ratio));
  if (ratios.length === 0) return undefined;
  const middle = LABEL + REACH * STEP;
  let y = 34;
  let section = "";
  const body: string[] = [];
  for (const row of ratios) {
    if (row.section !== section) {
      section = row.section;
      y += LINE;
      body.push(`<text x="8" y="${y}" class="s">${escaped(cut(section, 100))}</text>`);
    }
    y += LINE;
    body.push(bar(row, middle, y));
  }
  const height = y + 20;
  const steps = Array.from({ length: 2 * REACH + 1 }, (_, index) => index - REACH);
  const grid = steps.map((step) => {
    const x = middle + step * STEP;
    const name = step < 0 ? `1/${2 ** -step}` : String(2 ** step);
    return `<line x1="${x}" y1="40" x2="${x}" y2="${height - 8}" class="${step === 0 ? "one" : "g"}"/><text x="${x}" y="34" class="t">${name}×</text>`;
  });
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${WIDTH} ${height}" width="${WIDTH}" height="${height}" role="img">`,
    `<title>${escaped(title)}</title><style>${STYLE}</style>`,
    `<rect width="${WIDTH}" height="${height}" class="paper"/>`,
    ...grid,
    ...body,
    "</svg>\n",
  ].join("\n");
}

const STYLE = `text{font:12px system-ui,sans-serif;fill:#24292f}.s{font-weight:600}.t{font-size:11px;text-anchor:middle;fill:#57606a}
.paper{fill:#fff}.g{stroke:#d8dee4}.one{stroke:#57606a}.better{fill:#2da44e}.worse{fill:#bc4c00}`;

function bar(row: Ratio, middle: number, y: number): string {
  const doublings = Math.max(-REACH, Math.min(REACH, Math.log2(row.ratio)));
  const x = middle + Math.min(0, doublings) * STEP;
  const better = wantsLess(row) ? row.ratio <= 1 : row.ratio >= 1;
  const label = `${digits(row.ratio)} × ${row.to}`;
  const width = Math.max(1, Math.abs(doublings) * STEP);
  return [
    `<text x="20" y="${y}">${escaped(cut(row.what, 64))}</text>`,
    `<rect x="${x}" y="${y - 11}" width="${width.toFixed(1)}" height="14" class="${better ? "better" : "worse"}"><title>${escaped(label)}</title></rect>`,
    `<text x="${WIDTH - 184}" y="${y}">${escaped(cut(label, 30))}</text>`,
  ].join("");
}

const cut = (text: string, most: number): string => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
const escaped = (text: string): string => text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
