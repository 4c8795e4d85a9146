/** Lines of a page that a run writes, between two comments: in README.md the top of what was proved and measured. */
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const FILE = join(import.meta.dirname, "../README.md");

export function writeReadmeBlock(name: string, lines: readonly string[]): void {
  writeFileSync(FILE, withBlock(readFileSync(FILE, "utf8"), name, lines));
}

/** The page with these lines in place of what stood in the block. */
export function withBlock(page: string, name: string, lines: readonly string[]): string {
  const [begin, end] = [`<!-- ${name}: written by the run -->`, `<!-- /${name} -->`];
  const [from, to] = [page.indexOf(begin), page.indexOf(end)];
  if (from < 0 || to < from) throw new Error(`the page has no block ${name}: ${begin} … ${end}`);
  return `${page.slice(0, from)}${begin}\n${lines.join("\n")}\n${page.slice(to)}`;
}
