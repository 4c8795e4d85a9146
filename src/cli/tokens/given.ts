import type { Context, Input } from "../verb.ts";

/** The token a command is about: its argument, stdin for `-`, else the one that would be used. */
export async function givenToken(context: Context, input: Input): Promise<string> {
  const [argument] = input.args;
  if (argument === "-") return (await context.stdin()).trim();
  return argument ?? context.token();
}
