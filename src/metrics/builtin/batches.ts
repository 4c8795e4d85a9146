import { BatchBuilder, spell } from "../batch-builder.ts";
import type { SeriesBatch } from "../tsdb/ingest/series-batch.ts";
import { BUILTIN_LIMITS } from "./limits.ts";
import { isOwner, type Owner, ownerOf, SeriesShapes, spelledOwner } from "./series-shapes.ts";
import type { BuiltinSample } from "./sources.ts";

/** An owner in a round: its labels, and the numbers of its series' shapes. */
interface OwnerState {
  owner: Owner;
  shapes: Uint32Array;
}

/** Owners of an organization's series, by their encoded labels. */
type OrgRound = Map<string, OwnerState>;

/**
 * Batches of samples for the engine, one per organization and round. A series that is missing from a round gets a
 * staleness marker, so that it ends now and not after the query's lookback.
 */
export class Batches {
  /** The previous round, by organization. */
  #last = new Map<string, OrgRound>();
  /** Series that were open when this process began, of organizations without a round yet. */
  readonly #before = new Map<string, readonly Uint8Array[]>();
  readonly #shapes = new SeriesShapes();

  knows(org_id: string): boolean {
    return this.#last.has(org_id) || this.#before.has(org_id);
  }

  /** Series of an earlier process: those missing from the organization's next round end with it. */
  adopt(org_id: string, open: readonly Readonly<Record<string, string>>[]): void {
    this.#before.set(
      org_id,
      open.map(({ __name__: name = "", ...labels }) => spell(name, labels)),
    );
  }

  /** Begins a round; samples are added as they are read, so that those of all machines are never in memory at once. */
  begin(timestamp_ms: number): Round {
    return new Round(this.#shapes, this.#last, timestamp_ms);
  }

  /** Ends a round: returns its batches, with staleness markers for missing series. */
  end(round: Round): Map<string, SeriesBatch> {
    const next = round.state();
    for (const [org_id, spelled] of this.#missing(next)) round.builder(org_id).end(spelled, round.timestamp_ms);
    this.#last = next;
    this.#forgetShapes();
    return new Map([...round.builders].map(([org_id, builder]) => [org_id, builder.build()]));
  }

  /** Series of the previous round or process that are missing from this round. */
  *#missing(next: ReadonlyMap<string, OrgRound>): Generator<[org_id: string, spelled: Uint8Array]> {
    for (const [org_id, before] of this.#last) {
      const now = next.get(org_id);
      for (const [key, state] of before)
        for (const spelled of this.#ended(state, now?.get(key)?.shapes ?? NONE)) yield [org_id, spelled];
    }
    for (const [org_id, now] of next) for (const spelled of this.#closed(org_id, now)) yield [org_id, spelled];
  }

  /** Series that an owner no longer has. */
  *#ended({ owner, shapes }: OwnerState, now: Uint32Array): Generator<Uint8Array> {
    if (isSame(now, shapes)) return;
    const bytes = spelledOwner(owner);
    for (const shape of shapes) if (!now.includes(shape)) yield Buffer.concat([...this.#shapes.spell(shape, bytes)]);
  }

  /** Series open at start that are missing from the organization's first round. */
  *#closed(org_id: string, now: OrgRound): Generator<Uint8Array> {
    const open = this.#before.get(org_id) ?? [];
    this.#before.delete(org_id);
    const going = new Set(open.length > 0 ? this.#texts(now) : []);
    for (const spelled of open) if (!going.has(textOf(spelled))) yield spelled;
  }

  *#texts(round: OrgRound): Generator<string> {
    for (const { owner, shapes } of round.values()) {
      const bytes = spelledOwner(owner);
      for (const shape of shapes) yield textOf(Buffer.concat([...this.#shapes.spell(shape, bytes)]));
    }
  }

  /** Drops unused shapes when they outnumber those in use. */
  #forgetShapes(): void {
    const sent = [...this.#last.values()].flatMap((round) => [...round.values()]);
    const used = new Set<number>();
    for (const { shapes } of sent) for (const shape of shapes) used.add(shape);
    if (this.#shapes.size <= 2 * used.size + SPARE_SHAPES) return;
    const numbers = this.#shapes.keep(used);
    for (const one of sent) one.shapes = one.shapes.map((shape) => numbers.get(shape) ?? 0);
  }
}

const SPARE_SHAPES = 1000;

const isSame = (a: Uint32Array, b: Uint32Array): boolean =>
  a.length === b.length && a.every((value, place) => value === b[place]);

interface OwnerRound {
  owner: Owner;
  bytes: readonly Uint8Array[];
  shapes: Set<number>;
  /** Its shapes in the previous round. */
  known: Uint32Array;
}

const NONE = new Uint32Array();

/** A round being read. */
export class Round {
  readonly timestamp_ms: number;
  readonly builders = new Map<string, BatchBuilder>();
  readonly #shapes: SeriesShapes;
  readonly #last: ReadonlyMap<string, OrgRound>;
  readonly #orgs = new Map<string, Map<string, OwnerRound>>();
  /** The owner of the previous sample: those of one machine are adjacent. */
  #current: { org_id: string; ownerRound: OwnerRound } | undefined;

  constructor(shapes: SeriesShapes, last: ReadonlyMap<string, OrgRound>, timestamp_ms: number) {
    this.#shapes = shapes;
    this.#last = last;
    this.timestamp_ms = timestamp_ms;
  }

  get org_ids(): string[] {
    return [...this.#orgs.keys()];
  }

  add(samples: Iterable<BuiltinSample>): void {
    for (const sample of samples) if (!Number.isNaN(sample.value)) this.#add(sample);
  }

  #add(sample: BuiltinSample): void {
    const { shapes, bytes, known } = this.#ownerRoundOf(sample);
    const shape = this.#shapes.numberOf(sample);
    // A duplicate series in one round would have two values at one time; the first one stays.
    if (shapes.has(shape)) return;
    shapes.add(shape);
    const builder = this.builder(sample.org_id);
    // A zero before a counter's first sample, so that its first increase is visible.
    if (sample.counter && !known.includes(shape))
      builder.pushPieces(this.#shapes.spell(shape, bytes), this.timestamp_ms - BUILTIN_LIMITS.interval_ms, 0);
    builder.pushPieces(this.#shapes.spell(shape, bytes), this.timestamp_ms, sample.value);
  }

  #ownerRoundOf({ org_id, labels }: BuiltinSample): OwnerRound {
    const current = this.#current;
    if (current?.org_id === org_id && isOwner(current.ownerRound.owner, labels)) return current.ownerRound;
    const owner = ownerOf(labels);
    const key = owner.join("\0");
    const ownerRound = entryOf(
      entryOf(this.#orgs, org_id, () => new Map<string, OwnerRound>()),
      key,
      () => ({
        owner,
        bytes: spelledOwner(owner),
        shapes: new Set<number>(),
        known: this.#last.get(org_id)?.get(key)?.shapes ?? NONE,
      }),
    );
    this.#current = { org_id, ownerRound };
    return ownerRound;
  }

  builder(org_id: string): BatchBuilder {
    return entryOf(this.builders, org_id, () => new BatchBuilder());
  }

  /** The state for the next round. An owner with unchanged series keeps their array. */
  state(): Map<string, OrgRound> {
    return new Map(
      [...this.#orgs].map(([org_id, owners]) => [
        org_id,
        new Map(
          [...owners].map(([key, { owner, shapes, known }]) => {
            const fresh = Uint32Array.from(shapes);
            return [key, { owner, shapes: isSame(fresh, known) ? known : fresh }];
          }),
        ),
      ]),
    );
  }
}

/** Samples of a single moment without staleness tracking. */
export function batchOnce(samples: readonly BuiltinSample[], timestamp_ms: number): SeriesBatch {
  const builder = new BatchBuilder();
  for (const sample of samples) builder.push(spell(sample.name, sample.labels), timestamp_ms, sample.value);
  return builder.build();
}

const textOf = (spelled: Uint8Array): string => Buffer.from(spelled).toString("latin1");

function entryOf<V>(map: Map<string, V>, key: string, make: () => V): V {
  let value = map.get(key);
  if (value === undefined) {
    value = make();
    map.set(key, value);
  }
  return value;
}
