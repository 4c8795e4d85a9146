/** What is called: a kilobyte at any path; at /ticks the time, every few milliseconds, as it is when it is sent. */
import { createServer, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";

const TICKS = 300;
const EVERY_MS = 5;
const answer = Buffer.from(JSON.stringify({ text: "x".repeat(1000) }));
const headers = { "content-type": "application/json", "content-length": answer.length };

function tick(response: ServerResponse): void {
  response.writeHead(200, { "content-type": "text/event-stream" });
  let sent = 0;
  const timer = setInterval(() => {
    // A clock that all processes of a box share.
    response.write(`${process.hrtime.bigint()}\n`);
    if (++sent < TICKS) return;
    clearInterval(timer);
    response.end();
  }, EVERY_MS);
}

const server = createServer((request, response) => {
  if (request.url === "/ticks") tick(response);
  else response.writeHead(200, headers).end(answer);
});
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`ready ${(server.address() as AddressInfo).port}\n`);
});
