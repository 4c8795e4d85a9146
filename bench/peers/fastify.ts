/** Fastify with nothing on it, for the same bytes: `fastify.ts ANSWER_FILE`, prints its port. */
import { readFileSync } from "node:fs";
import type { AddressInfo } from "node:net";
import fastify from "fastify";

const answer = readFileSync(process.argv[2] ?? "", "utf8");
const app = fastify();
for (const method of ["GET", "POST"] as const) {
  app.route({
    method,
    url: method === "GET" ? "/v1/apps/:app_name" : "/v1/apps",
    handler: (_request, reply) =>
      reply
        .code(method === "POST" ? 201 : 200)
        .header("svc-request-id", "01ARZ3NDEKTSV4RRFFQ69G5FAV")
        .header("content-type", "application/json; charset=utf-8")
        .send(answer),
  });
}
await app.listen({ host: "127.0.0.1", port: 0 });
process.stdout.write(`ready ${(app.server.address() as AddressInfo).port}\n`);
