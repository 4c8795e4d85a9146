/** Sends the data set to an engine as fast as it takes it. */
import { Agent, request } from "node:http";
import type { Engine } from "./engines.ts";
import { requestsOf } from "./requests.ts";

/** One connection for each file, each with one request at a time. */
export async function load(engine: Engine, files: readonly string[]): Promise<void> {
  const agent = new Agent({ keepAlive: true });
  const url = `${engine.base}/api/v1/write`;
  const headers = { "content-encoding": "snappy", "x-prometheus-remote-write-version": "0.1.0" };
  const post = (body: Buffer): Promise<void> =>
    new Promise((resolve, reject) => {
      const sent = request(url, { agent, method: "POST", headers }, (answer) => {
        answer.resume();
        answer.once("end", () => {
          if ((answer.statusCode ?? 500) < 300) resolve();
          else reject(new Error(`${engine.name} answered ${answer.statusCode} to a write`));
        });
      });
      sent.once("error", reject);
      sent.end(body);
    });
  await Promise.all(
    files.map(async (file) => {
      for (const body of requestsOf(file)) await post(body);
    }),
  );
  agent.destroy();
}
