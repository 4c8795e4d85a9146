import { count } from "#core/words.ts";
import type { Verb } from "../verb.ts";

export const proxyReload: Verb = {
  words: "proxy reload",
  summary: "Restart the proxy's workers without dropping a request",
  examples: ["hangar proxy reload"],
  async run({ client }) {
    const data = await client.call("POST /v1/proxy/reload", {});
    return { data, text: `${count(data.workers, "worker")}, proxy_id ${data.proxy_id}` };
  },
};
