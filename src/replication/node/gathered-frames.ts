/**
 * Reads the frames of a stream in batches. A frame after a pause is handled at once. Frames that arrive shortly after
 * it are handled together: applying ten transactions at once costs little more than applying one, and one write of the
 * primary arrives in several chunks.
 */
import { finished } from "node:stream";
import { REPLICATION_LIMITS } from "../limits.ts";
import type { Peer } from "./peer.ts";
import { type Frame, FrameReader } from "./wire.ts";

/** Runs until the stream ends, or `take` throws: nothing of a stream counts after what could not be taken. */
export async function readGathered(
  { response, body }: Awaited<ReturnType<Peer["openStream"]>>,
  take: (frames: Iterable<Frame>) => void,
): Promise<void> {
  const { gather_ms, gather_bytes } = REPLICATION_LIMITS;
  const reader = new FrameReader();
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let timer: NodeJS.Timeout | undefined;
  let at_once: NodeJS.Immediate | undefined;
  let taken_ms = 0;
  let refused = false;
  const takeAll = (): void => {
    clearTimeout(timer);
    clearImmediate(at_once);
    [timer, at_once] = [undefined, undefined];
    if (refused) return;
    try {
      take(reader.frames());
    } catch (error) {
      refused = true;
      reject(error);
    }
    taken_ms = performance.now();
  };
  finished(response, (error) => {
    takeAll();
    if (error) reject(error);
    else resolve();
  });
  body.read(response, (bytes) => {
    if (refused) return;
    reader.push(bytes);
    if (reader.waiting >= gather_bytes) takeAll();
    if (timer ?? at_once) return;
    const wait_ms = taken_ms + gather_ms - performance.now();
    if (wait_ms > 0) timer = setTimeout(takeAll, wait_ms);
    // Behind what the socket has right now.
    else at_once = setImmediate(takeAll);
  });
  await promise;
}
