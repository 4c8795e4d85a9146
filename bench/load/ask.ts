/** An HTTP API on a socket or a port, over connections that stay open. */
import { Agent, request } from "node:http";
import { text } from "node:stream/consumers";

/** What is answered; an error when it is refused. */
export type Ask = (method: string, path: string, body?: unknown) => Promise<string>;

export function asker(target: { socketPath: string } | { port: number }, token?: string): Ask {
  const agent = new Agent({ keepAlive: true });
  const where = { host: "127.0.0.1", ...target };
  const authorization = token === undefined ? {} : { authorization: `Bearer ${token}` };
  const ask: Ask = (method, path, body) =>
    new Promise((resolve, reject) => {
      const payload = body === undefined ? undefined : JSON.stringify(body);
      const size = payload ? { "content-type": "application/json", "content-length": Buffer.byteLength(payload) } : {};
      const options = { ...where, agent, method, path, headers: { host: "localhost", ...authorization, ...size } };
      const sent = request(options, (response) => {
        void text(response).then((answer) => {
          const status = response.statusCode ?? 0;
          if (status < 400) resolve(answer);
          else reject(new Error(`${method} ${path}: ${status} ${answer.slice(0, 300)}`));
        }, reject);
      });
      sent.on("error", (error: NodeJS.ErrnoException) => {
        // An idle connection that the server was closing just then: the request was never read.
        if (sent.reusedSocket && error.code === "ECONNRESET") resolve(ask(method, path, body));
        else reject(error);
      });
      sent.end(payload);
    });
  return ask;
}
