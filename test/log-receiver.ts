/** Receives what log drains send by HTTP, and answers as it is told. */
import { createServer, type IncomingHttpHeaders } from "node:http";
import type { AddressInfo } from "node:net";
import { buffer } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { gunzipSync } from "node:zlib";

export interface Received {
  url: string;
  headers: IncomingHttpHeaders;
  body: Buffer;
}

export type Respond = (request: Received) => {
  status: number;
  headers?: Record<string, string>;
  body?: string | Buffer;
};

export async function logReceiver(t: Pick<TestContext, "after">, respond: Respond = () => ({ status: 204 })) {
  const received: Received[] = [];
  const server = createServer((request, response) => {
    void (async () => {
      const raw = await buffer(request);
      const body = request.headers["content-encoding"] === "gzip" ? gunzipSync(raw) : raw;
      const one = { url: request.url ?? "", headers: request.headers, body };
      const { status, headers, body: answer } = respond(one);
      if (status < 300) received.push(one);
      response.writeHead(status, headers).end(answer);
    })();
  });
  await new Promise<void>((resolve) => {
    server.listen(0, "127.0.0.1", resolve);
  });
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return { url: `http://127.0.0.1:${port}`, host: `127.0.0.1:${port}`, received };
}

interface LokiPush {
  streams: { stream: Record<string, string>; values: [string, string][] }[];
}

/** The messages of a stream's machine, in the order in which they came. */
export function lokiMessages(received: readonly Received[], machine_id?: string): string[] {
  return received
    .flatMap(({ body }) => (JSON.parse(body.toString()) as LokiPush).streams)
    .filter(({ stream }) => machine_id === undefined || stream["machine_id"] === machine_id)
    .flatMap(({ values }) => values.map(([, message]) => message));
}
