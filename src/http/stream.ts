import type { FastifyReply } from "fastify";
import type { Clock } from "#core/clock.ts";
import { LIMITS } from "#core/limits.ts";

/** One server-sent event. `id` is the cursor for a reconnect. */
export interface StreamItem {
  id?: string;
  event?: string;
  data: unknown;
}

/** Number of readers dropped for being too slow; a metric. */
export const dropped = { slow_readers: 0 };

/**
 * Sends what `source` yields until it ends or the reader disconnects. With back-pressure: a slow reader buffers one
 * page; one that reads nothing gets an error and is dropped. An idle stream sends heartbeat comments, which as `lines`
 * are empty ones.
 */
export async function sendStream(
  reply: FastifyReply,
  source: AsyncIterable<readonly StreamItem[]>,
  { clock, signal, lines = false }: { clock: Clock; signal: AbortSignal; lines?: boolean },
): Promise<void> {
  const { type, begin, beat, encode } = lines ? NDJSON : EVENTS;
  reply.hijack();
  const { raw } = reply;
  raw.writeHead(200, {
    ...(reply.getHeaders() as Record<string, string>),
    "content-type": `${type}; charset=utf-8`,
    "cache-control": "no-store",
    "x-accel-buffering": "no",
  });
  raw.write(begin);
  const over = new AbortController();
  void heartbeat(raw, { clock, beat, signal: AbortSignal.any([signal, over.signal]) });
  try {
    for await (const items of source) {
      if (signal.aborted) break;
      raw.write(items.map(encode).join(""));
      if (!(await drained(raw, clock, signal))) {
        dropped.slow_readers++;
        raw.end(encode({ event: "error", data: { type: "error", reason: "too slow" } }));
        break;
      }
    }
  } finally {
    over.abort();
    raw.end();
  }
}

/** Several sources as one stream, as their items come. It ends when all have ended, one fails, or the reader leaves. */
export async function* together<Item>(
  sources: readonly ((signal: AbortSignal) => AsyncGenerator<Item>)[],
  signal: AbortSignal,
): AsyncGenerator<Item> {
  const over = new AbortController();
  const ending = AbortSignal.any([signal, over.signal]);
  const next = async (source: AsyncGenerator<Item>) => ({ source, result: await source.next() });
  const pending = new Map(sources.map((begin) => begin(ending)).map((source) => [source, next(source)]));
  try {
    while (pending.size > 0) {
      const { source, result } = await Promise.race(pending.values());
      if (result.done) pending.delete(source);
      else {
        yield result.value;
        pending.set(source, next(source));
      }
    }
  } finally {
    over.abort();
    await Promise.allSettled([
      ...pending.values(),
      ...Array.from(pending.keys(), (source) => source.return(undefined)),
    ]);
  }
}

type Raw = FastifyReply["raw"];

interface Heartbeat {
  clock: Clock;
  beat: string;
  signal: AbortSignal;
}

async function heartbeat(raw: Raw, { clock, beat, signal }: Heartbeat): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(LIMITS.stream_heartbeat_ms, signal).catch(() => {});
    if (!signal.aborted) raw.write(beat);
  }
}

/** Whether the reader drained the stream within the timeout and the limit. */
async function drained(raw: Raw, clock: Clock, signal: AbortSignal): Promise<boolean> {
  if (raw.writableLength > LIMITS.stream_buffer_bytes) return false;
  if (!raw.writableNeedDrain || signal.aborted) return true;
  const taken = Promise.withResolvers<boolean>();
  const done = (): void => taken.resolve(true);
  const late = new AbortController();
  raw.once("drain", done).once("close", done);
  const stop = AbortSignal.any([signal, late.signal]);
  clock.sleep(LIMITS.stream_stall_ms, stop).then(() => taken.resolve(false), done);
  const result = await taken.promise;
  late.abort();
  raw.off("drain", done).off("close", done);
  return result;
}

function encodeEvent({ id, event, data }: StreamItem): string {
  const lines = [
    ...(id === undefined ? [] : [`id: ${id}`]),
    ...(event === undefined ? [] : [`event: ${event}`]),
    `data: ${JSON.stringify(data)}`,
  ];
  return `${lines.join("\n")}\n\n`;
}

const EVENTS = {
  type: "text/event-stream",
  begin: ": the stream begins\n\n",
  beat: ": still here\n\n",
  encode: encodeEvent,
};
const NDJSON: typeof EVENTS = {
  type: "application/x-ndjson",
  begin: "\n",
  beat: "\n",
  encode: ({ data }) => `${JSON.stringify(data)}\n`,
};
