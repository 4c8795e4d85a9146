/** The least a Node server can do for the same bytes: `node-http.ts ANSWER_FILE`, prints its port. */
import { readFileSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";

const answer = readFileSync(process.argv[2] ?? "");
const headers = {
  "content-type": "application/json; charset=utf-8",
  "content-length": answer.length,
  "svc-request-id": "01ARZ3NDEKTSV4RRFFQ69G5FAV",
};
const server = createServer((request, response) => {
  // A body is read to its end, as everyone must who wants the next request.
  request.resume().on("end", () => {
    response.writeHead(request.method === "POST" ? 201 : 200, headers);
    response.end(answer);
  });
});
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`ready ${(server.address() as AddressInfo).port}\n`);
});
