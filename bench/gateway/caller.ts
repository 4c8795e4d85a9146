/** Asks for one path: `caller.ts SOCKET|PORT PATH CLIENTS SECONDS`. */
import { connect } from "node:net";
import { call } from "../load/callers.ts";

const [where = "", path = "/", clients = "1", seconds = "1"] = process.argv.slice(2);
const request = `GET ${path} HTTP/1.1\r\nhost: bench\r\nuser-agent: bench\r\n\r\n`;

await call({
  open: () => (/^\d+$/.test(where) ? connect(Number(where), "127.0.0.1") : connect(where)),
  request: () => request,
  expected: "200",
  clients: Number(clients),
  seconds: Number(seconds),
});
