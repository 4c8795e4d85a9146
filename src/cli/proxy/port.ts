import { once } from "node:events";
import { findMachine } from "../machines/find.ts";
import { print, printJsonLine } from "../terminal-text.ts";
import { type Input, neededApp, textOption, UsageError, type Verb } from "../verb.ts";
import { type LocalPort, openLocalPort } from "./tunnel.ts";

/** Forwards a local port to a private one. It listens on loopback only, so that other hosts cannot connect. */
export const proxyPort: Verb = {
  words: "proxy",
  summary: "Forward a local TCP port to a private port of an app's machine, through the API, until interrupted",
  arguments: [
    ["<ports>", "PORT, or LOCAL:REMOTE; local port 0 takes a free one"],
    ["[app]", "the app (default: that of the folder)"],
  ],
  options: [
    ["-a, --app <app>", "the app"],
    ["-m, --machine <id>", "this machine (default: one that is started, healthy ones first)"],
    ["--bind <address>", "local address to listen on (default: 127.0.0.1)"],
  ],
  examples: ["hangar proxy 5432 ledger", "hangar proxy 15432:5432 --app ledger"],
  details: () => "TCP only: UDP ports cannot be forwarded. Revoking the token ends open connections within a second.",
  async run(context, input) {
    const ports = portsOf(input.args[0] ?? "");
    const app_name = input.args[1] ?? neededApp(input);
    const port = await openLocalPort(context, {
      app_name,
      machine_id: await machineOf(context, input, app_name),
      port: ports.remote,
      listen: { host: textOption(input, "bind") ?? "127.0.0.1", port: ports.local },
    });
    printForward(port, { app_name, port: ports.remote }, input);
    await interrupted();
    await port.close();
    return { data: null, text: "" };
  },
};

async function machineOf(context: Parameters<Verb["run"]>[0], input: Input, app: string): Promise<string | undefined> {
  const wanted = textOption(input, "machine");
  if (wanted === undefined) return undefined;
  const { app_from: _, ...rest } = input;
  const found = await findMachine(context, { ...rest, args: [wanted], options: { ...input.options, app } });
  return found.params.machine_id;
}

function printForward(local: LocalPort, remote: { app_name: string; port: number }, { options }: Input): void {
  const host = local.host.includes(":") ? `[${local.host}]` : local.host;
  const machine_id = local.machine_id();
  if (options["json"] === true) printJsonLine({ local: { host: local.host, port: local.port }, ...remote, machine_id });
  else
    print(`${host}:${local.port} -> port ${remote.port} of machine ${machine_id} (${remote.app_name}); Ctrl-C ends it`);
}

/** Resolves on SIGINT or SIGTERM. */
export async function interrupted(): Promise<void> {
  const ending = new AbortController();
  const { signal } = ending;
  await Promise.race(["SIGINT", "SIGTERM", "SIGHUP"].map((name) => once(process, name, { signal })));
  ending.abort();
}

/** `5432` is both the local and the remote port. */
export function portsOf(text: string): { local: number; remote: number } {
  const [, first = "", second = first] = /^(\d{1,5})(?::(\d{1,5}))?$/.exec(text) ?? [];
  const [local, remote] = [Number(first), Number(second)];
  if (first === "" || local > 65_535 || remote < 1 || remote > 65_535)
    throw new UsageError(`${text} is not PORT or LOCAL:REMOTE, ports being 1 to 65535 (local 0: a free one)`);
  return { local, remote };
}
