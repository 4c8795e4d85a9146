/**
 * The query language next to the engines it follows: random queries from the grammar, over the same samples, to ours
 * and to Debian's Prometheus (dialect `promql`) or VictoriaMetrics (dialect `metricsql`). Both are older than what ours
 * follows; every difference must have a name in `rules.ts`.
 *
 * The seed is always the same, so that nothing is stopped by the bad luck of others; `SEED=n` looks for more.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import type { Dialect } from "#metrics/promql/ast.ts";
import { whyNot } from "../../bench/metrics/engines.ts";
import { compare, describe, show } from "../differential/answers.ts";
import type { Asked } from "../differential/choices.ts";
import { recordedSeries, writeRequests } from "../differential/data.ts";
import { type Peer, startOurs, startPeer } from "../differential/engines.ts";
import { randomQuery } from "../differential/queries.ts";
import { type AskBoth, explain, isOrdered } from "../differential/rules.ts";
import { random, runs, tempDir } from "../support.ts";

const QUERIES = runs(400, 5000, 10_000);
const SEED = 8;
/** Fewer answers with something in them, and the test would prove little. */
const LEAST_ANSWERED = 0.5;

const PAIRS: [Peer, Dialect][] = [
  ["prometheus", "promql"],
  ["victoria-metrics", "metricsql"],
];

interface Seen {
  same: number;
  refused: number;
  empty: number;
  explained: Map<string, number>;
  unexplained: string[];
}

async function askOne(peer: Peer, asked: Asked, ask: AskBoth, seen: Seen): Promise<void> {
  const answers = await ask(asked);
  const { ours, theirs } = answers;
  if (theirs.error !== undefined) seen.refused++;
  else if (theirs.series.size === 0) seen.empty++;
  const difference = compare(ours, theirs, isOrdered(peer, asked));
  if (!difference) {
    seen.same++;
    return;
  }
  const names = await explain(peer, asked, answers, difference, ask);
  for (const name of names ?? []) seen.explained.set(name, (seen.explained.get(name) ?? 0) + 1);
  if (names) return;
  const when = asked.step_ms === undefined ? `at ${asked.end_ms}` : `from ${asked.start_ms} to ${asked.end_ms}`;
  const step = asked.step_ms === undefined ? "" : ` step ${asked.step_ms}`;
  seen.unexplained.push(
    `${asked.query}\n  ${when}${step}\n${describe(difference)}\n  ours: ${show(ours)}\n  theirs: ${show(theirs)}`,
  );
}

suite("queries compared with the reference engines", () => {
  for (const [peer, dialect] of PAIRS) {
    test(`${QUERIES} queries of ${dialect} equal ${peer}'s or have a known difference (T8)`, {
      timeout: 900_000,
    }, async (t) => {
      const why = whyNot(peer);
      if (why !== undefined) return t.skip(why);
      const first = Number(process.env["SEED"] ?? SEED);
      t.diagnostic(`SEED=${first}`);
      const bodies = writeRequests(recordedSeries());
      const us = await startOurs(tempDir(), dialect, bodies);
      t.after(() => us.stop());
      const them = await startPeer(peer, bodies);
      t.after(() => them.stop());
      const ask: AskBoth = async (asked) => {
        const [ours, theirs] = await Promise.all([us.ask(asked), them.ask(asked)]);
        return { ours, theirs };
      };
      const seen: Seen = { same: 0, refused: 0, empty: 0, explained: new Map(), unexplained: [] };
      const roll = random(first);
      for (let n = 0; n < QUERIES; n++) await askOne(peer, randomQuery(dialect, roll), ask, seen);

      t.diagnostic(`${seen.same} the same; ${seen.refused} refused and ${seen.empty} empty there`);
      for (const [name, count] of seen.explained) t.diagnostic(`${count} × ${name}`);
      assert.ok(QUERIES - seen.refused - seen.empty > QUERIES * LEAST_ANSWERED, "most queries find something");
      const list = seen.unexplained.slice(0, 10).join("\n\n");
      assert.equal(seen.unexplained.length, 0, `SEED=${first}: without an explanation:\n\n${list}`);
    });
  }
});
