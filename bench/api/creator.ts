/** Creates apps with names of their own: `creator.ts PORT TOKEN CLIENTS SECONDS PREFIX ORGS`. */
import { connect } from "node:net";
import { call } from "../load/callers.ts";

const [port = "", token = "", clients = "", seconds = "", prefix = "", orgs = ""] = process.argv.slice(2);
let next = 0;

await call({
  open: () => connect(Number(port), "127.0.0.1"),
  request() {
    const n = next++;
    // Spread over organizations, because one has a limit of apps.
    const body = JSON.stringify({ app_name: `${prefix}-${n}`, org_slug: `bench-${n % Number(orgs)}` });
    return `POST /v1/apps HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer ${token}\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`;
  },
  expected: "201",
  clients: Number(clients),
  seconds: Number(seconds),
});
