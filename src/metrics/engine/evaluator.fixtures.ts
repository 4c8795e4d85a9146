/** An evaluator for the engine's tests: it counts, waits, fails or ends the worker, as the query says. */
import type { Evaluator } from "./evaluator.ts";

class PlacedError extends Error {
  override readonly name = "PlacedError";
  readonly details = { at: 7 };
}

export const evaluator: Evaluator = {
  evaluate(source, { query, start_ms, end_ms }, cancelled) {
    switch (query) {
      case "fail":
        throw new PlacedError("wrong at 7");
      case "crash":
        queueMicrotask(() => {
          throw new Error("crashed as asked");
        });
        return new Uint8Array();
      case "forever":
        while (!cancelled());
        throw new Error("cancelled");
      default: {
        const { count } = source.select({ selector: [[]], start_ms, end_ms });
        return Buffer.from(JSON.stringify({ query, count }));
      }
    }
  },
};
