import { facts } from "../output.ts";
import type { Verb } from "../verb.ts";

export const authWhoami: Verb = {
  words: "auth whoami",
  summary: "Show the token in use and what it may do",
  examples: ["hangar auth whoami"],
  async run({ client }) {
    const { tokens } = await client.call("GET /v1/tokens/current", {});
    const text = tokens.map(({ name, kind, token_id, org_slug, rights }) =>
      facts([
        ["token", `${name} (${kind}, ${token_id})`],
        ["organization", org_slug ?? "all"],
        ["may", rights.join("; ")],
      ]),
    );
    return { data: tokens, text: text.join("\n\n") };
  },
};
