import type { Verb } from "../verb.ts";

export const dashboard: Verb = {
  words: "dashboard",
  summary: "Print a one-time link that opens the dashboard, signed in with this token",
  examples: ["hangar dashboard"],
  async run({ client }) {
    const { code, expires_at } = await client.call("POST /v1/tokens/sign_in_codes", {});
    // In the fragment, which browsers do not send and servers do not log.
    const url = new URL(`/#/sign-in/${code}`, client.base_url).href;
    return { data: { url, expires_at }, text: url };
  },
};
