/**
 * `hangar db run` as a program of its own: runs a command on a replica while its applications may write there, and sends what
 * it wrote to the primary when it has ended. Exits as the command did.
 *
 *   run-locked.ts URL NAME [credentials] -- COMMAND [ARGUMENT…]
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { parseArgs } from "node:util";
import { messageOf } from "#core/assert.ts";
import { systemClock } from "#core/clock.ts";
import { CREDENTIAL_OPTIONS, credentialsFrom, nodeAddress } from "./flags.ts";
import { REPLICATION_LIMITS } from "./limits.ts";
import { NodeClient } from "./node-client.ts";

async function main(): Promise<number> {
  const { positionals, values } = parseArgs({ allowPositionals: true, options: CREDENTIAL_OPTIONS });
  const [url = "", name = "", command, ...args] = positionals;
  if (command === undefined) throw new Error("say what to run, after --");
  const client = new NodeClient(nodeAddress("<node>", url), systemClock, await credentialsFrom(values));
  const { id } = await client.lock(name);
  const say = (message: string): boolean => process.stderr.write(`${message}\n`);
  const renewing = setInterval(() => {
    client.renewLock(name, id).catch((error: unknown) => say(`renewing the lock: ${messageOf(error)}`));
  }, REPLICATION_LIMITS.halt_ms / 4);
  // Ends with the command: what it committed is sent even after an interrupt.
  for (const signal of ["SIGINT", "SIGTERM"] as const) process.on(signal, () => undefined);
  let exit: number;
  try {
    const child = spawn(command, args, { stdio: "inherit" });
    const [code] = (await once(child, "close")) as [number | null];
    exit = code ?? 1;
  } catch (error) {
    say(`${command}: ${messageOf(error)}`);
    exit = 127;
  }
  clearInterval(renewing);
  const { transactions, position } = await client.unlock(name, id);
  say(`${transactions} transactions were sent to the primary; ${name} is at ${position}`);
  return exit;
}

main().then(
  (exit) => process.exit(exit),
  (error: unknown) => {
    process.stderr.write(`${messageOf(error)}\n`);
    process.exit(1);
  },
);
