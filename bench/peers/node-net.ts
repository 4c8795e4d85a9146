/**
 * The least a program on Node's sockets can do for the same bytes: `node-net.ts ANSWER_FILE`, prints its port. It does not
 * even read what it is asked; only clients that send one request at a time, in one piece, get on with it.
 */
import { readFileSync } from "node:fs";
import { type AddressInfo, createServer } from "node:net";

const answer = readFileSync(process.argv[2] ?? "");
const head =
  `HTTP/1.1 200 OK\r\ncontent-type: application/json; charset=utf-8\r\ncontent-length: ${answer.length}\r\n` +
  "svc-request-id: 01ARZ3NDEKTSV4RRFFQ69G5FAV\r\n\r\n";
const message = Buffer.concat([Buffer.from(head), answer]);
const server = createServer({ noDelay: true }, (socket) => {
  socket.on("data", () => socket.write(message)).on("error", () => socket.destroy());
});
server.listen(0, "127.0.0.1", () => {
  process.stdout.write(`ready ${(server.address() as AddressInfo).port}\n`);
});
