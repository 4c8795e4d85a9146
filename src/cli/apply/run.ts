/** Executes a plan step by step. After an interruption, the next `apply` resumes where this one stopped. */
import type { MachineConfig } from "#client/api.ts";
import { andWait } from "../machines/follow.ts";
import { type Context, UsageError } from "../verb.ts";
import { renameMounts } from "./document.ts";
import { type Step, stepLines } from "./plan.ts";
import { readApp } from "./read.ts";

export async function runStep(context: Context, step: Step): Promise<void> {
  const { client } = context;
  const { app } = step;
  const params = { app_name: app.name };
  context.say(stepLines(step)[0] ?? "");
  switch (step.do) {
    case "create app": {
      const { name: app_name, org_slug, network } = app;
      await client.call("POST /v1/apps", { body: { app_name, org_slug, ...(network ? { network } : {}) } });
      return;
    }
    case "allocate address":
      await client.call("POST /v1/apps/:app_name/ip_assignments", { params, body: { type: step.type as "v4" } });
      return;
    case "create volume": {
      // `ref` exists only in documents, where volumes of one name are numbered; the platform chooses their hosts.
      const { ref: _, ...volume } = step.volume;
      const body = { ...volume, require_unique_zone: false };
      await client.call("POST /v1/apps/:app_name/volumes", { params, body });
      return;
    }
    case "extend volume": {
      const { id } = (await readApp(context, app.name))?.volumes.get(step.volume.ref) ?? failNotFound(step.volume.ref);
      const body = { size_gb: step.volume.size_gb };
      await client.call("PUT /v1/apps/:app_name/volumes/:volume_id/extend", {
        params: { ...params, volume_id: id },
        body,
      });
      return;
    }
    case "create machine":
    case "update machine":
      await putMachine(context, step);
      return;
    case "destroy machine": {
      const machine = (await readApp(context, app.name))?.machines.find(({ name }) => name === step.name);
      if (!machine) return;
      await client.call("DELETE /v1/apps/:app_name/machines/:machine_id", {
        params: { ...params, machine_id: machine.id },
        query: { force: true },
      });
      return;
    }
  }
}

async function putMachine(
  context: Context,
  { app, machine }: Extract<Step, { do: "create machine" | "update machine" }>,
): Promise<void> {
  const { client } = context;
  const params = { app_name: app.name };
  const now = await readApp(context, app.name);
  const config: MachineConfig = renameMounts(machine.config, (volume) =>
    volume.startsWith("@") ? (now?.volumes.get(volume.slice(1)) ?? failNotFound(volume)).id : volume,
  );
  const { name, region, state = "started" } = machine;
  const there = now?.machines.find((one) => one.name === name);
  const skip_launch = there ? there.state !== "started" : state !== "started";
  if (!there) {
    const body = { name, ...(region ? { region } : {}), skip_launch, config };
    const made = await client.call("POST /v1/apps/:app_name/machines", { params, body });
    await settle(context, { ...params, machine_id: made.id }, skip_launch, async () => {});
    return;
  }
  const place = { ...params, machine_id: there.id };
  // Replaces only the version that was compared.
  const body = { config, skip_launch, current_version: there.instance_id };
  await settle(context, place, skip_launch, () =>
    client.call("POST /v1/apps/:app_name/machines/:machine_id", { params: place, body }),
  );
}

const settle = (
  context: Context,
  params: { app_name: string; machine_id: string },
  skip_launch: boolean,
  work: () => Promise<unknown>,
) => andWait(context, { params, headers: {} }, skip_launch ? ["settled", ...RESTING] : ["started"], work);

const RESTING = ["created", "stopped", "suspended", "started"] as const;

function failNotFound(what: string): never {
  throw new UsageError(`there is no volume ${what.replace(/^@/, "")}; name it under volumes of the same app`);
}
