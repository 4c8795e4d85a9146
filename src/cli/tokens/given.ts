import type { Context, Input } from "../verb.ts";

/** The token argument of a command: stdin for `-`, by default the token in use. */
export async function givenToken(context: Context, input: Input): Promise<string> {
  const [argument] = input.args;
  if (argument === "-") return (await context.stdin()).trim();
  return argument ?? context.token();
}
