/** docs/RELIABILITY.md: every promise, and what showed it last. */
import { PROMISES } from "./promises.ts";
import type { Proof } from "./record.ts";

const HEAD = `# What Hangar promises, and what shows it

Written by \`npm run prove\`; do not edit. Each line is a promise, the tests that show it, and what they said the last time:
figures, the tier they ran in, the day, and the seed that repeats the run (\`SEED=n\`). **Pending** promises have no test yet;
**broken** ones have a test that failed.

    npm run prove -- --tier push            # the sizes of every push
    npm run prove                           # the night's sizes
    npm run prove -- volumes --tier soak    # one area, the largest sizes
    npm run prove -- --box debian13         # in a freshly installed Debian, which QEMU runs; or debian12-v2
    npm run prove -- --box debian13 --only B3    # of these tests, those that show one promise

Many of these tests have a control: a broken variant of what they test, which they must catch.
`;

export function reliabilityPage(proofs: readonly Proof[]): string {
  const modules = Object.entries(PROMISES).map(([module, promises]) => {
    const rows = Object.entries(promises).map(([id, words]) => {
      const shown = proofs.filter((proof) => proof.promises.includes(id));
      return `| ${id} | ${words} | ${stateOf(shown)} | ${shown.map(cell).join("<br>")} |`;
    });
    return `## ${module}\n\n| | promise | | shown by |\n| --- | --- | --- | --- |\n${rows.join("\n")}\n`;
  });
  return [`${HEAD}\n${summary(proofs)}\n`, ...modules].join("\n");
}

/** The line about promises in README.md. */
export function reliabilityTop(proofs: readonly Proof[]): string[] {
  return [`What is promised, and what shows it ([docs/RELIABILITY.md](docs/RELIABILITY.md)). ${summary(proofs)}`];
}

function summary(proofs: readonly Proof[]): string {
  const all = Object.values(PROMISES).flatMap((module) => Object.keys(module));
  const states = all.map((id) => stateOf(proofs.filter(({ promises }) => promises.includes(id))));
  const count = (state: string): number => states.filter((one) => one === state).length;
  return `${all.length} promises: ${count("shown")} shown, ${count("**pending**")} pending, ${count("**broken**")} broken.`;
}

function stateOf(shown: readonly Proof[]): string {
  if (shown.length === 0) return "**pending**";
  return shown.every(({ passed }) => passed) ? "shown" : "**broken**";
}

/** Of what a test said; the rest is in docs/reliability.json. Enough for a recovery time of everything that chaos breaks. */
const SAID = 8;

function cell({ file, test, tier, date, seed, said, passed }: Proof): string {
  const figures = said.length > 0 ? `: ${said.slice(0, SAID).join("; ")}` : "";
  const run = [tier, date, ...(seed ? [`SEED=${seed}`] : [])].join(", ");
  const name = test.replaceAll(/ ?\([A-Z]\d+b?(, [A-Z]\d+b?)*\)/g, "");
  return plain(`${passed ? "" : "**failed** "}\`${file}\` ${name}${figures} (${run})`);
}

/** As it may stand in a cell of a table. */
const plain = (text: string): string => text.replaceAll("|", "\\|").replaceAll("\n", " ");
