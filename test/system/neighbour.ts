/** Somebody quiet beside whatever goes on: asks one thing after the other, and sees how long each takes. */
import assert from "node:assert/strict";
import { PATIENCE_MS } from "../support.ts";

interface Seen {
  asked: number;
  p50: number;
  p99: number;
}

/** Asks at least `least` times, and until `over`. Every request is answered, and none takes for ever. */
export async function askedMeanwhile(ask: () => Promise<void>, least: number, over: () => boolean): Promise<Seen> {
  const took: number[] = [];
  while (took.length < least || !over()) {
    const began = performance.now();
    await ask();
    took.push(performance.now() - began);
  }
  took.sort((a, b) => a - b);
  const at = (share: number): number => took[Math.min(took.length - 1, Math.floor(took.length * share))] ?? 0;
  assert.ok(at(1) < PATIENCE_MS, `one request took ${at(1)} ms`);
  return { asked: took.length, p50: at(0.5), p99: at(0.99) };
}

/** For a report: the ratio says more than milliseconds of a box that is busy with other things. */
export const beside = (quiet: Seen, loud: Seen): string =>
  `${loud.asked} requests of a neighbour answered, p50 ${loud.p50.toFixed(1)} ms (${(loud.p50 / quiet.p50).toFixed(1)}×), ` +
  `p99 ${loud.p99.toFixed(1)} ms (${(loud.p99 / quiet.p99).toFixed(1)}×)`;
