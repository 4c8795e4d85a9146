/** A platform with a machine, and requests the way that machine makes them: over its own socket. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type RequestOptions, request, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { type Answer, type TestPlatform, testPlatform } from "./platform.ts";

export interface Machine {
  id: string;
  name: string;
  /** Its socket. */
  socket: string;
}

export interface Inside extends TestPlatform {
  machine(name: string, options?: { labels?: string; app?: string; env?: Record<string, string> }): Promise<Machine>;
  /** A request over the machine's socket. */
  from(machine: Machine, target: string, options?: Sent): Promise<Answer>;
}

interface Sent {
  body?: string | Buffer;
  headers?: Record<string, string>;
}

export async function inside(
  t: Pick<TestContext, "after">,
  env: Record<string, string> = {},
  options: Parameters<typeof testPlatform>[2] = {},
): Promise<Inside> {
  const platform = await testPlatform(t, env, options);
  await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
  return {
    ...platform,
    async machine(name, { labels, app = "web", env: variables = {} } = {}) {
      const metadata = labels === undefined ? {} : { sprite_labels: labels };
      const config = { image: "registry.example/web:1", metadata, env: variables };
      const { body } = await platform.ask(`POST /v1/apps/${app}/machines`, { body: { name, config } });
      const { id } = body as { id: string };
      await platform.ask(`GET /v1/apps/${app}/machines/${id}/wait`);
      // What a driver does before it starts a machine.
      return { id, name, socket: join(await platform.local_api.open(id), "api") };
    },
    from: (machine, target, sent) => overSocket(machine.socket, target, sent),
  };
}

export async function overSocket(socketPath: string, target: string, { body, headers }: Sent = {}): Promise<Answer> {
  const [method, path] = target.split(" ");
  return await ask({ socketPath, method, path, agent: false, headers: { host: "localhost", ...headers } }, body);
}

/** A path as it is written: no client library tidies it up. */
export async function ask(options: RequestOptions, body?: string | Buffer): Promise<Answer> {
  const call = request(options);
  call.end(body);
  const [response] = (await once(call, "response")) as [IncomingMessage];
  const answer = await text(response);
  const json = response.headers["content-type"]?.startsWith("application/json") && answer !== "";
  return {
    status: response.statusCode ?? 0,
    headers: response.headers,
    text: answer,
    body: json ? JSON.parse(answer) : undefined,
  };
}

interface Seen {
  method: string;
  url: string;
  headers: IncomingMessage["headers"];
  body: string;
}

/** A provider that records its requests, with scripted responses. */
export async function provider(
  t: Pick<TestContext, "after">,
  answer: (request: IncomingMessage, response: ServerResponse) => void = (_request, response) =>
    void response.setHeader("content-type", "application/json").end('{"ok":true}'),
): Promise<{ url: string; seen: Seen[] }> {
  const seen: Seen[] = [];
  const server = createServer((incoming, response) => {
    void text(incoming).then((body) => {
      seen.push({ method: incoming.method ?? "", url: incoming.url ?? "", headers: incoming.headers, body });
      answer(incoming, response);
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen };
}
