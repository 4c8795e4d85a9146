/** What runs have shown, kept in docs/reliability.json: the last run of each test that shows a promise. */
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, join, relative } from "node:path";
import type { Line } from "./reporter.ts";

export interface Proof {
  /** The test's file, from the project's root, and its name. */
  file: string;
  test: string;
  promises: string[];
  passed: boolean;
  tier: string;
  /** The day, as YYYY-MM-DD. */
  date: string;
  seconds: number;
  seed: string | undefined;
  /** What the test said about its figures. */
  said: string[];
}

const root = join(import.meta.dirname, "../..");
const FILE = join(root, "docs/reliability.json");

export function readProofs(): Proof[] {
  return existsSync(FILE) ? (JSON.parse(readFileSync(FILE, "utf8")) as Proof[]) : [];
}

/** Keeps what is new in place of what the same tests showed before in that tier, and forgets tests that are no more. */
export function keepProofs(fresh: readonly Proof[]): void {
  const kept = new Map(
    [...readProofs(), ...fresh].map((proof) => [`${proof.tier} ${proof.file} ${proof.test}`, proof]),
  );
  const sorted = [...kept.values()]
    .filter(({ file }) => existsSync(join(root, file)))
    .sort((a, b) => a.file.localeCompare(b.file, "en") || a.test.localeCompare(b.test, "en"));
  writeFileSync(FILE, `${JSON.stringify(sorted, null, 2)}\n`);
}

/** What was said, without where on this box it happened: of a temporary file its name, of one of ours its path in the project. */
export function withoutPlaces(said: string): string {
  return said.replaceAll(/(?:\/[\w.@+-]+)+/g, (path) => {
    if (path.startsWith(`${root}/`)) return relative(root, path);
    return path.startsWith(`${tmpdir()}/`) ? basename(path) : path;
  });
}

/** Reads what the reporter wrote. A test that was skipped showed nothing. */
export function proofsOf(lines: readonly Line[], run: { tier: string; date: string }): Proof[] {
  const proofs: Proof[] = [];
  const last = new Map<string, Proof>();
  for (const line of lines) {
    if ("said" in line) {
      const proof = last.get(line.at);
      const seed = /^SEED=(\d+)$/.exec(line.said)?.[1];
      if (seed && proof) proof.seed = seed;
      else proof?.said.push(withoutPlaces(line.said));
      continue;
    }
    last.delete(line.at);
    if (line.skipped !== undefined) continue;
    const { test, promises, passed, ms } = line;
    const seconds = Math.round(ms / 100) / 10;
    const proof = {
      file: relative(root, line.file),
      test,
      promises,
      passed,
      ...run,
      seconds,
      seed: undefined,
      said: [],
    };
    last.set(line.at, proof);
    proofs.push(proof);
  }
  return proofs;
}
