/**
 * Sends batches by syslog over TLS. Syslog has no acknowledgement, so each batch has a connection of its own: when the
 * server closes its side after ours has ended, it has read everything.
 */
import { once } from "node:events";
import { connect, type TLSSocket } from "node:tls";
import { guardedLookup, literalProblem } from "#core/public-addresses.ts";
import { MACHINE_LIMITS } from "../../limits.ts";
import { syslogBody } from "./formats/syslog.ts";
import { reasonOf, type SendOptions } from "./http-sender.ts";
import type { DrainLine, DrainTarget, Outcome } from "./types.ts";

/** Syslog over TLS, RFC 5425. */
const SYSLOG_TLS_PORT = 6514;

export function syslogPlace(address: string): { host: string; port: number } {
  const { hostname, port } = new URL(address);
  return { host: hostname.replace(/^\[|\]$/g, ""), port: port === "" ? SYSLOG_TLS_PORT : Number(port) };
}

export async function sendBySyslog(
  { url, ca, cert, key }: DrainTarget,
  lines: readonly DrainLine[],
  { guarded, signal }: SendOptions,
): Promise<Outcome> {
  const { host, port } = syslogPlace(url);
  try {
    const problem = guarded ? literalProblem(host) : undefined;
    if (problem) throw problem;
    const socket = connect({
      host,
      port,
      servername: host,
      ...(guarded ? { lookup: guardedLookup() } : {}),
      ...(ca === undefined ? {} : { ca }),
      ...(cert === undefined ? {} : { cert, key }),
    });
    await delivered(socket, lines, AbortSignal.any([signal, AbortSignal.timeout(MACHINE_LIMITS.drain_timeout_ms)]));
    return { taken: true, refused: 0 };
  } catch (thrown) {
    return { taken: false, reason: reasonOf(thrown, `${host}:${port}`) };
  }
}

async function delivered(socket: TLSSocket, lines: readonly DrainLine[], signal: AbortSignal): Promise<void> {
  const stop = (): void => {
    const words = `no end of the connection within ${MACHINE_LIMITS.drain_timeout_ms / 1000} s (limit drain_timeout_ms)`;
    socket.destroy(new Error(words));
  };
  signal.addEventListener("abort", stop, { once: true });
  try {
    signal.throwIfAborted();
    await once(socket, "secureConnect");
    const ended = once(socket, "end");
    // Servers have nothing to say.
    socket.resume();
    socket.end(syslogBody(lines));
    await ended;
  } finally {
    signal.removeEventListener("abort", stop);
    socket.destroy();
  }
}
