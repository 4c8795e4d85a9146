/** Clients that ask one request after the other, for tests that change something meanwhile. */
import { Agent, type IncomingMessage, request } from "node:http";
import { text as read } from "node:stream/consumers";
import type { TestContext } from "node:test";
import { messageOf } from "#core/assert.ts";

interface Load {
  /** Failures in words, with how long the request took and when the load had begun. */
  failures: string[];
  count: number;
  end(): Promise<void>;
}

/** Half of them send a body, half of them keep their connections. With the test they end, however it ends. */
export function load(t: Pick<TestContext, "after">, port: number, clients: number): Load {
  const agent = new Agent({ keepAlive: true });
  const state = { failures: [] as string[], count: 0 };
  const began = performance.now();
  let over = false;
  const client = async (n: number): Promise<void> => {
    while (!over) {
      const asked = performance.now();
      await ask(port, { post: n % 2 === 0, agent: n % 4 < 2 ? agent : false }).catch((error: unknown) => {
        const [took, at] = [performance.now() - asked, asked - began].map((ms) => `${ms.toFixed(0)} ms`);
        state.failures.push(`${messageOf(error)}, after ${took}, asked ${at} into the load`);
      });
      state.count++;
    }
  };
  const all = Promise.all(Array.from({ length: clients }, (_, n) => client(n)));
  const end = async (): Promise<void> => {
    over = true;
    await all;
    agent.destroy();
  };
  t.after(end);
  return Object.assign(state, { end });
}

async function ask(port: number, { post, agent }: { post: boolean; agent: Agent | false }): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<IncomingMessage>();
  const headers = { host: "web.localhost" };
  const asked = request({ host: "127.0.0.1", port, agent, method: post ? "POST" : "GET", headers }, resolve);
  asked.on("error", reject);
  asked.end(post ? "some words" : undefined);
  const answer = await promise;
  const text = await read(answer);
  if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${text}`);
}
