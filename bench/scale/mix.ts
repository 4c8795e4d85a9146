import type { Daemon } from "../../test/system/daemon.ts";

const CONFIG = { image: "web:1", metadata: { role: "mixed" } };
const MACHINES = "/v1/apps/web/machines";

export interface Mixed {
  /** Milliseconds of each request, by what it was. */
  took: Map<string, number[]>;
  /** Answers that say to come again later. */
  refused: string[];
  /** Answers that were neither a success nor a conflict with what another caller was just doing. */
  failures: string[];
}

interface Caller {
  ids: string[];
  cursors: Map<string, string>;
}

type Step = (daemon: Daemon, caller: Caller, pick: () => number) => [method: string, path: string, body?: object];

const one = ({ ids }: Caller, pick: () => number): string => ids[Math.floor(pick() * ids.length)] ?? "";
const paged = ({ cursors }: Caller, path: string): string => {
  const cursor = cursors.get(path);
  return cursor === undefined ? path : `${path}&cursor=${cursor}`;
};

/** What callers do, and how often out of a hundred. */
const STEPS: readonly [name: string, weight: number, step: Step][] = [
  ["create", 10, () => ["POST", MACHINES, { config: CONFIG }]],
  ["start", 15, (_, caller, pick) => ["POST", `${MACHINES}/${one(caller, pick)}/start`]],
  ["stop", 15, (_, caller, pick) => ["POST", `${MACHINES}/${one(caller, pick)}/stop`]],
  ["get", 20, (_, caller, pick) => ["GET", `${MACHINES}/${one(caller, pick)}`]],
  ["page of 100 machines", 20, (_, caller) => ["GET", paged(caller, `${MACHINES}?limit=100`)]],
  [
    "page of 100 of the organization",
    10,
    (_, caller) => ["GET", paged(caller, "/v1/orgs/personal/machines?limit=100")],
  ],
  ["page of 100 events", 10, (_, caller) => ["GET", paged(caller, "/v1/orgs/personal/events?limit=100")]],
];

/** Create, start, stop, get, lists and events at once, by so many callers, for so long. */
export async function mixedLoad(
  daemon: Daemon,
  { callers, seconds, seed }: { callers: number; seconds: number; seed: () => number },
): Promise<Mixed> {
  const mixed: Mixed = { took: new Map(STEPS.map(([name]) => [name, []])), refused: [], failures: [] };
  const until = performance.now() + seconds * 1000;
  await Promise.all(
    Array.from({ length: callers }, async () => {
      const caller: Caller = { ids: [], cursors: new Map() };
      await ask(daemon, caller, mixed, STEPS[0] ?? fail(), seed);
      while (performance.now() < until) await ask(daemon, caller, mixed, chosen(seed()), seed);
    }),
  );
  return mixed;
}

/** Each step as often as it weighs. */
const DECK = STEPS.flatMap((step) => Array.from({ length: step[1] }, () => step));
const chosen = (part: number): (typeof STEPS)[number] => DECK[Math.floor(part * DECK.length)] ?? fail();

function fail(): never {
  throw new Error("there are no steps");
}

async function ask(
  daemon: Daemon,
  caller: Caller,
  { took, refused, failures }: Mixed,
  [name, , step]: (typeof STEPS)[number],
  pick: () => number,
): Promise<void> {
  const [method, path, body] = step(daemon, caller, pick);
  const began = performance.now();
  const answer = await daemon.call(method, path, body, { accept: "application/json" });
  took.get(name)?.push(performance.now() - began);
  const failure = `${name}: ${answer.status} ${JSON.stringify(answer.body)}`;
  // A database that is out of breath says so, and the caller comes again.
  if (answer.status === 429 || answer.status === 503) refused.push(failure);
  // Two requests for one machine may exclude each other; that is an answer.
  else if (answer.status >= 300 && answer.status !== 409) failures.push(failure);
  if (answer.status >= 300) return;
  if (name === "create") caller.ids.push(String(answer.body["id"]));
  const [list = ""] = path.split("&cursor=");
  const next = answer.headers.get("svc-next-cursor");
  if (next === null) caller.cursors.delete(list);
  else caller.cursors.set(list, next);
}
