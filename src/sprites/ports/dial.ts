/** Connects to a port of a sprite: at its address, and otherwise from inside, where programs on loopback are reached. */
import type { Writable } from "node:stream";
import { ApiError } from "#core/errors.ts";
import { DIAL_HELPER } from "#machines/runtime/dial-helper.ts";
import type { Ref, RuntimeDriver } from "#machines/runtime/driver.ts";

export interface Connection {
  /** What the other side sends. */
  pieces: AsyncIterator<Buffer>;
  writable: Writable;
  close(): void;
}

export type Dialer = Pick<RuntimeDriver, "connect" | "process">;

/** Fails with `port_unreachable` when nothing accepts connections there. */
export async function dialSprite(driver: Dialer, ref: Ref, port: number, signal: AbortSignal): Promise<Connection> {
  try {
    const stream = await driver.connect(ref, port, signal);
    stream.on("error", () => {});
    return { pieces: stream[Symbol.asyncIterator](), writable: stream, close: () => void stream.destroy() };
  } catch (thrown) {
    if (!(thrown instanceof ApiError) || thrown.code !== "port_unreachable") throw thrown;
    const inside = await dialInside(driver, ref, port, signal);
    if (!inside) throw thrown;
    return inside;
  }
}

async function dialInside(
  driver: Dialer,
  ref: Ref,
  port: number,
  signal: AbortSignal,
): Promise<Connection | undefined> {
  const program = await driver.process(ref, { command: [DIAL_HELPER, String(port)] }, signal);
  const close = (): void => program.kill();
  program.stderr.resume();
  signal.addEventListener("abort", close, { once: true });
  const pieces = (program.stdout as AsyncIterable<Buffer>)[Symbol.asyncIterator]();
  const next = await pieces.next().catch(() => undefined);
  const first: Buffer | undefined = next?.done ? undefined : next?.value;
  signal.removeEventListener("abort", close);
  // The first byte says that it is connected.
  if (first?.[0] === 0) return { pieces: after(first.subarray(1), pieces), writable: program.stdin, close };
  close();
  return undefined;
}

async function* after(first: Buffer, rest: AsyncIterator<Buffer>): AsyncGenerator<Buffer> {
  if (first.length > 0) yield first;
  for (let next = await rest.next(); !next.done; next = await rest.next()) yield next.value;
}
