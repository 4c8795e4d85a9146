/**
 * Asks for one path over kept-alive connections, each waiting for its answer before the next request:
 * `caller.ts SOCKET|PORT PATH CLIENTS SECONDS`. Prints one line of JSON at the end. It speaks just enough HTTP to
 * cost little: what it measures shares the machine with it.
 */
import { connect, type Socket } from "node:net";

const [where = "", path = "/", clients = "1", seconds = "1"] = process.argv.slice(2);
const until = performance.now() + Number(seconds) * 1000;
const request = `GET ${path} HTTP/1.1\r\nhost: bench\r\nuser-agent: bench\r\n\r\n`;
const taken: number[] = [];
const statuses = new Map<string, number>();

const open = (): Socket => (/^\d+$/.test(where) ? connect(Number(where), "127.0.0.1") : connect(where));

/** The length of the answer at the start of `text`, or undefined while it is incomplete. */
function answerLength(text: string): number | undefined {
  const head = text.indexOf("\r\n\r\n");
  if (head < 0) return undefined;
  const length = head + 4 + Number(/\r\ncontent-length: (\d+)/i.exec(text.slice(0, head))?.[1] ?? 0);
  return text.length >= length ? length : undefined;
}

function client(): Promise<void> {
  return new Promise((resolve, reject) => {
    const socket = open().setNoDelay().setEncoding("latin1");
    let started = 0;
    let received = "";
    const send = (): void => {
      started = performance.now();
      socket.write(request);
    };
    socket.on("connect", send);
    socket.on("error", reject);
    socket.on("data", (chunk: string) => {
      received += chunk;
      const length = answerLength(received);
      if (length === undefined) return;
      const status = received.slice(9, 12);
      statuses.set(status, (statuses.get(status) ?? 0) + 1);
      taken.push(performance.now() - started);
      received = received.slice(length);
      if (performance.now() < until) send();
      else socket.end(() => resolve());
    });
  });
}

const started = performance.now();
await Promise.all(Array.from({ length: Number(clients) }, client));
const elapsed = (performance.now() - started) / 1000;
taken.sort((a, b) => a - b);
const at = (share: number): number => taken[Math.floor(taken.length * share)] ?? Number.NaN;
const refused = [...statuses].filter(([status]) => status !== "200");
process.stdout.write(
  `${JSON.stringify({ requests: taken.length, seconds: elapsed, p50_ms: at(0.5), p99_ms: at(0.99), refused })}\n`,
);
