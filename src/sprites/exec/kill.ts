import type { Clock } from "#core/clock.ts";
import type { StreamItem } from "#http/stream.ts";
import type { ExecSession } from "./session.ts";

/** Sends a signal, then SIGKILL, and says how it goes. */
export async function* killing(
  session: ExecSession,
  { signal, timeout_ms, clock }: { signal: string; timeout_ms: number; clock: Clock },
): AsyncGenerator<StreamItem[]> {
  const line = (type: string, message: string, more: object = {}): StreamItem[] => [
    { data: { type, message, ...more } },
  ];
  const waited = new AbortController();
  session.signal(signal);
  yield line("signal", `sent ${signal}`, { signal });
  const late = clock.sleep(timeout_ms, waited.signal).then(
    () => "late" as const,
    () => "late" as const,
  );
  let how = await Promise.race([session.ended, late]);
  waited.abort();
  if (how === "late") {
    yield line("timeout", `it did not end within ${timeout_ms / 1000} s`);
    session.close();
    how = await session.ended;
    yield line("killed", "sent SIGKILL", { signal: "SIGKILL", exit_code: how.exit_code });
  } else yield line("exited", `it ended with ${how.exit_code}`, { exit_code: how.exit_code });
  yield line("complete", "the session has ended", { exit_code: how.exit_code });
}
