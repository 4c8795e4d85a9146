import { ACTIONS, type Action, caveatWords, refusal } from "#core/caveats.ts";
import { systemClock } from "#core/clock.ts";
import { MACAROON_PREFIX, MacaroonError, parse } from "#core/macaroon.ts";
import { textOption, UsageError, type Verb } from "../verb.ts";
import { givenToken } from "./given.ts";

export const tokensInspect: Verb = {
  words: "tokens inspect",
  summary: "Explain what a token may do; --can checks one action",
  arguments: [["[token]", "the token (default: the token in use; - reads it from stdin)"]],
  options: [
    ["--can <action>", "read, write, create, delete or control"],
    ["--org <slug>", "… in this organization"],
    ["--app <name>", "… on this app"],
    ["--machine <id>", "… on this machine"],
  ],
  examples: ["hangar tokens inspect $TOKEN", "hangar tokens inspect $TOKEN --can delete --app web"],
  async run(context, input) {
    const text = await givenToken(context, input);
    const { id, caveats } = read(text);
    const rights = caveats.length === 0 ? ["everything, in every organization"] : caveats.map(caveatWords);
    const can = textOption(input, "can");
    if (can === undefined)
      return { data: { id, rights }, text: [`token ${id}`, ...rights.map((right) => `  ${right}`)].join("\n") };
    if (!Object.hasOwn(ACTIONS, can))
      throw new UsageError(`${can} is not an action; there are ${Object.keys(ACTIONS).join(", ")}`);
    const [own] = caveats.flatMap((caveat) => (caveat.type === "org" ? [caveat.org] : []));
    const org = textOption(input, "org") ?? own;
    const app = textOption(input, "app");
    const machine = textOption(input, "machine");
    const reason = refusal(caveats, {
      action: can as Action,
      now_ms: systemClock.now(),
      ...(org === undefined ? {} : { org }),
      ...(app === undefined ? {} : { app }),
      ...(machine === undefined ? {} : { machine }),
    });
    const allowed = reason === undefined;
    // Only the platform can verify that the token is genuine and not revoked.
    return {
      data: { id, allowed, ...(reason ? { reason } : {}) },
      text: allowed ? "yes" : `no: ${reason}`,
      exit: allowed ? 0 : 1,
    };
  },
};

function read(text: string): Pick<ReturnType<typeof parse>, "id" | "caveats"> {
  if (!text.startsWith(MACAROON_PREFIX)) {
    const id = /^hf1_([0-9A-Z]{26})/.exec(text)?.[1];
    if (id) return { id, caveats: [] };
  }
  try {
    return parse(text);
  } catch (thrown) {
    if (thrown instanceof MacaroonError) throw new UsageError(thrown.message);
    throw thrown;
  }
}
