/** Which parts of the platform are not ready, and why: asked for now and then, more often while something is missing. */
import { Client, ClientError } from "#client/client.ts";
import { Cell } from "./cell.ts";
import { fleet } from "./fleet.ts";

export interface NotReady {
  part: string;
  reason: string;
}

interface Readiness {
  /** Parts that were checked and are ready. */
  ready: readonly string[];
  missing: readonly NotReady[];
  /** When the database last answered, by the browser's clock; undefined before the first time. */
  current_at: number | undefined;
}

export const readiness = new Cell<Readiness>({ ready: [], missing: [], current_at: undefined });
/** How often the database came back: what failed meanwhile is asked for again. */
export const returns = new Cell(0);

/** Without its database the platform shows what it knew last. */
export const isStale = ({ missing }: Pick<Readiness, "missing">): boolean =>
  missing.some(({ part }) => part === "database");

/** Without retries: what is missing is to be shown at once. */
const client = new Client({ base_url: location.origin, token: undefined });
const READY_MS = 15_000;
const MISSING_MS = 2000;

/** Asks until stopped, and at once when the stream of events breaks or comes back. */
export function watchReadiness(): () => void {
  const ending = new AbortController();
  let timer: ReturnType<typeof setTimeout> | undefined;
  const look = async (): Promise<void> => {
    clearTimeout(timer);
    const found = await ask(ending.signal);
    if (ending.signal.aborted) return;
    if (found) update(found);
    clearTimeout(timer);
    timer = setTimeout(() => void look(), readiness.value.missing.length > 0 ? MISSING_MS : READY_MS);
  };
  let { link } = fleet.value;
  const unwatch = fleet.watch(() => {
    if (fleet.value.link === link) return;
    link = fleet.value.link;
    void look();
  });
  void look();
  return () => {
    unwatch();
    clearTimeout(timer);
    ending.abort();
  };
}

function update(found: Pick<Readiness, "ready" | "missing">): void {
  const before = readiness.value;
  const stale = isStale(found);
  readiness.set({ ...found, current_at: stale ? before.current_at : Date.now() });
  if (isStale(before) && !stale) returns.set(returns.value + 1);
}

/** Undefined when there was no answer, or another one: then nothing is known. */
async function ask(signal: AbortSignal): Promise<Pick<Readiness, "ready" | "missing"> | undefined> {
  try {
    const { checks } = await client.call("GET /readyz", { signal });
    return { ready: Object.keys(checks), missing: [] };
  } catch (thrown) {
    const reasons = thrown instanceof ClientError ? (thrown.body as { reasons?: unknown }).reasons : undefined;
    return Array.isArray(reasons) ? { ready: [], missing: reasons as NotReady[] } : undefined;
  }
}
