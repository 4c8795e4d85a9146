import type { Verb } from "../verb.ts";

export const authToken: Verb = {
  words: "auth token",
  summary: "Print the full-access token of this platform",
  examples: ["hangar auth token"],
  async run(context) {
    const token = context.token();
    return { data: { token }, text: token };
  },
};
