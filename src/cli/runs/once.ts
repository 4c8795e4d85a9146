/** `hangar run --once`: runs a command in a temporary machine, with local output, exit code and Ctrl-C. */
import { constants } from "node:os";
import type { MachineConfig } from "#client/api.ts";
import { ClientError } from "#client/client.ts";
import type { Definition } from "../deploy/definition.ts";
import { oneOffConfig } from "../deploy/one-off.ts";
import { collect } from "../lists.ts";
import { configOf } from "../machines/config-options.ts";
import { type Context, type Input, type Result, textOption, UsageError } from "../verb.ts";
import { exitOf, followRun, howItEnded, runOf, writeLine } from "./follow.ts";

const SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP"] as const;

export async function runOnce(
  context: Context,
  input: Input,
  { app_name, image, command }: { app_name: string; image: string; command: readonly string[] },
): Promise<Result> {
  const { client } = context;
  const base = input.options["release"] === true ? await releaseConfig(context, app_name) : { image };
  const options = configOf(input);
  const env = { ...base.env, ...options.env };
  const config: MachineConfig = {
    ...oneOffConfig({ ...base, ...options, env }, command.length > 0 ? command : undefined),
    ...(options.mounts ? { mounts: options.mounts } : {}),
    auto_destroy: true,
  };
  const machine = await client.call("POST /v1/apps/:app_name/machines", {
    params: { app_name },
    body: { name: textOption(input, "name"), region: textOption(input, "region"), config },
  });
  for (const warning of machine.warnings ?? []) context.say(`warning: ${warning}`);
  if (input.options["detach"] === true) {
    const run = await runOf(client, app_name, machine.id);
    return { data: run, text: run.id };
  }
  const interrupt = new Interrupt((kill) => destroy(context, { app_name, machine_id: machine.id, kill }));
  try {
    const { id: run_id } = await runOf(client, app_name, machine.id);
    const how = { json: input.options["json"] === true, raw: input.options["raw"] === true };
    const run = await followRun(client, { app_name, run_id }, (line) => writeLine(line, how));
    // An exited machine destroys itself, one that failed to start does not. If followRun throws, the task runs on.
    await destroy(context, { app_name, machine_id: machine.id, kill: false }).catch(() => {});
    if (interrupt.signal !== undefined) return { data: run, text: "", exit: interrupt.exit };
    if (run.exit_code === null || run.signal !== null || run.oom_killed)
      context.say(`run ${run.id} ${run.state}: ${howItEnded(run)}`);
    return { data: run, text: "", raw: true, exit: exitOf(run) };
  } finally {
    interrupt.close();
  }
}

/** Image, environment and size of the first process group of the release that runs. */
async function releaseConfig({ client }: Context, app_name: string): Promise<MachineConfig> {
  const params = { app_name };
  const releases = await collect(client.pages("GET /v1/apps/:app_name/releases", { params }));
  const current = releases.find(({ status }) => status === "complete");
  if (!current) throw new UsageError(`${app_name} has no release yet: \`hangar deploy\` makes one, or name an image`);
  const { definition } = await client.call("GET /v1/apps/:app_name/releases/:version", {
    params: { app_name, version: String(current.version) },
  });
  const [first] = (definition as Definition).groups;
  if (!first) throw new UsageError(`release ${current.version} of ${app_name} has no process group`);
  return first.config;
}

async function destroy(
  { client }: Context,
  { app_name, machine_id, kill }: { app_name: string; machine_id: string; kill: boolean },
): Promise<void> {
  await client
    .call("DELETE /v1/apps/:app_name/machines/:machine_id", {
      params: { app_name, machine_id },
      query: { force: true, kill },
    })
    .catch((thrown: unknown) => {
      if (!(thrown instanceof ClientError && thrown.http === 404)) throw thrown;
    });
}

/** Ctrl-C, a signal, or a closed pipe stops the task: first as its config says, the second time at once. */
class Interrupt {
  signal: NodeJS.Signals | undefined;
  readonly #end: (kill: boolean) => Promise<void>;
  readonly #hear = (signal: NodeJS.Signals): void => this.#ended(signal);
  readonly #unread = (): void => this.#ended("SIGPIPE");

  constructor(end: (kill: boolean) => Promise<void>) {
    this.#end = end;
    for (const name of SIGNALS) process.on(name, this.#hear);
    // Replaces the listener that exits at once.
    process.stdout.removeAllListeners("error").on("error", this.#unread);
  }

  get exit(): number {
    return this.signal === undefined ? 0 : 128 + constants.signals[this.signal];
  }

  close(): void {
    for (const name of SIGNALS) process.off(name, this.#hear);
  }

  #ended(signal: NodeJS.Signals): void {
    const again = this.signal !== undefined;
    if (again && signal === "SIGPIPE") return;
    this.signal ??= signal;
    void this.#end(again).catch(() => process.exit(this.exit));
  }
}
