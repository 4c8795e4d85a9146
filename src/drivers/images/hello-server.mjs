/** Runs inside machines made from `hangar/hello`. Plain JavaScript: nothing but Node is there. */
import { createServer } from "node:http";

const { env } = process;
const fact = (name) => env[`SVC_${name}`] ?? env[`FLY_${name}`] ?? "";
const started = Date.now();
let requests = 0;

const server = createServer((request, response) => {
  requests++;
  process.stdout.write(`${request.method} ${request.url} (request ${requests})\n`);
  const facts = {
    message: "hello from Hangar",
    machine: fact("MACHINE_ID"),
    app: fact("APP_NAME"),
    region: fact("REGION"),
    private_ip: fact("PRIVATE_IP"),
    path: request.url,
    // Kept in memory alone: a suspended machine goes on counting, a stopped one begins at 1 again.
    requests,
    up_seconds: Math.round((Date.now() - started) / 1000),
  };
  const json = (request.headers.accept ?? "").includes("json");
  const lines = Object.entries(facts).map(([name, value]) => `${name.padEnd(12)} ${value}`);
  response.writeHead(200, { "content-type": json ? "application/json" : "text/plain; charset=utf-8" });
  response.end(json ? `${JSON.stringify(facts)}\n` : `${lines.join("\n")}\n`);
});

for (const signal of ["SIGINT", "SIGTERM"]) {
  process.on(signal, () => {
    process.stdout.write(`${signal}: bye after ${requests} requests\n`);
    process.exit(0);
  });
}

const port = Number(env.PORT) || 8080;
server.listen(port, () => process.stdout.write(`hello listens on port ${port}\n`));
