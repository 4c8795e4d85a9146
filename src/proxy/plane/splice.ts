import type { Duplex } from "node:stream";
import { PROXY_LIMITS } from "../limits.ts";
import { release } from "./http1/read-buffers.ts";
import type { PlaneServices } from "./types.ts";

interface Splice {
  plane: PlaneServices;
  /** Called at intervals, to count bytes moved since the last time. */
  count: () => void;
  /** What the client and the machine have already sent. */
  early: Buffer;
  answer: Buffer;
}

/** Connects two sockets in both directions, with back-pressure. */
export function splice(client: Duplex, machine: Duplex, { plane, count, early, answer }: Splice): void {
  let moved_at = plane.now();
  const watched = {
    sweep(now: number): void {
      count();
      if (now - moved_at > PROXY_LIMITS.stream_idle_ms) end();
    },
    drain(): void {},
    cut: (): void => end(),
  };
  const end = (): void => {
    client.destroy();
    machine.destroy();
  };
  const pass = (from: Duplex, to: Duplex): void => {
    from.on("data", (chunk: Buffer) => {
      moved_at = plane.now();
      if (!to.write(chunk)) from.pause();
      else if (to.writableLength === 0 && chunk.length >= PROXY_LIMITS.one_write_bytes) release(chunk);
    });
    to.on("drain", () => from.resume());
    from.on("end", () => to.end());
    from.on("error", end);
    from.on("close", () => {
      // After a clean end the other side can still write; after an error it is closed too.
      if (!from.readableEnded) to.destroy();
      if (to.closed || to.destroyed) plane.unwatch(watched);
    });
  };
  plane.watch(watched);
  pass(client, machine);
  pass(machine, client);
  if (early.length > 0) machine.write(early);
  if (answer.length > 0) client.write(answer);
  client.resume();
  machine.resume();
}
