/**
 * Callers on kept-alive connections, each waiting for its answer before the next request. They speak just enough
 * HTTP to cost little: what they measure shares the machine with them.
 */
import type { Socket } from "node:net";

export interface Load {
  open(): Socket;
  request(): string;
  /** The status of an answer that counts. */
  expected: string;
  clients: number;
  seconds: number;
}

/** Calls until the time is over, and prints one line of JSON. */
export async function call({ open, request, expected, clients, seconds }: Load): Promise<void> {
  const started = performance.now();
  const until = started + seconds * 1000;
  const taken: number[] = [];
  const statuses = new Map<string, number>();
  const caller = (): Promise<void> =>
    new Promise((resolve, reject) => {
      const socket = open().setNoDelay().setEncoding("latin1");
      let sent = 0;
      let received = "";
      const send = (): void => {
        sent = performance.now();
        socket.write(request());
      };
      socket.on("connect", send);
      socket.on("error", reject);
      socket.on("data", (chunk: string) => {
        received += chunk;
        const length = answerLength(received);
        if (length === undefined) return;
        const status = received.slice(9, 12);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
        taken.push(performance.now() - sent);
        received = received.slice(length);
        if (performance.now() < until) send();
        else socket.end(() => resolve());
      });
    });
  await Promise.all(Array.from({ length: clients }, caller));
  const elapsed = (performance.now() - started) / 1000;
  taken.sort((a, b) => a - b);
  const at = (share: number): number => taken[Math.floor(taken.length * share)] ?? Number.NaN;
  const refused = [...statuses].filter(([status]) => status !== expected);
  process.stdout.write(
    `${JSON.stringify({ requests: taken.length, seconds: elapsed, p50_ms: at(0.5), p99_ms: at(0.99), refused })}\n`,
  );
}

/** The length of the answer at the start of `text`, or undefined while it is incomplete. */
function answerLength(text: string): number | undefined {
  const head = text.indexOf("\r\n\r\n");
  if (head < 0) return undefined;
  const length = head + 4 + Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, head))?.[1] ?? 0);
  return text.length >= length ? length : undefined;
}
