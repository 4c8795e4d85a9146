/** Deploys a branch as a preview app: a separate small app whose machines suspend when idle. */
import type { MachineConfig } from "#client/api.ts";
import { ClientError } from "#client/client.ts";
import type { Group } from "../app-file/groups.ts";
import type { Option } from "../options.ts";
import { type Context, type Input, type Result, textOption, UsageError } from "../verb.ts";
import type { Definition } from "./definition.ts";
import type { GitState } from "./git.ts";
import { reported } from "./history.ts";

export const PREVIEW: Option = [
  "--preview [branch]",
  "deploy it as the preview app of this branch (default: the folder's branch)",
];

export const isPreview = ({ options }: Input): boolean => options["preview"] !== undefined;

interface OpenedPreview {
  /** Sends requests with the token of the preview. */
  context: Context;
  app_name: string;
  /** Deletes the preview if this deploy created it and failed. */
  failed(): Promise<void>;
}

/** Finds or creates the preview of the branch. */
export async function openPreview(
  context: Context,
  parent: string,
  input: Input,
  { git_commit, git_branch }: GitState,
): Promise<OpenedPreview> {
  const branch = textOption(input, "preview") ?? git_branch;
  if (branch === undefined)
    throw new UsageError("--preview: this folder is on no Git branch; name one: --preview feature/x");
  const params = { app_name: parent };
  const { app_name, is_new, token } = await context.client.call("POST /v1/apps/:app_name/previews", {
    params,
    body: { branch, ...(git_commit === undefined ? {} : { git_commit }) },
  });
  context.say(`${is_new ? "New preview" : "Preview"} of ${branch}: ${app_name}`);
  return {
    context: { ...context, client: context.client.withToken(token) },
    app_name,
    async failed() {
      if (!is_new) return;
      const request = { params: { ...params, preview_name: app_name } };
      await context.client.call("DELETE /v1/apps/:app_name/previews/:preview_name", request);
    },
  };
}

/** What a deploy of the branch's preview would do. */
export async function reportedPreview(
  context: Context,
  parent: string,
  input: Input,
  { git, definition }: { git: GitState; definition: Definition },
): Promise<Result> {
  const known = await previewOf(context, parent, textOption(input, "preview") ?? git.git_branch);
  const is_new = known === undefined;
  try {
    return await reported(context, known ?? `${parent}--new-preview`, definition, { is_new });
  } catch (thrown) {
    if (is_new || !(thrown instanceof ClientError) || thrown.http !== 403) throw thrown;
    // A token of the app alone may deploy its previews, and not read their machines.
    const lines = [`update the machines of preview ${known}, which this token may not read`];
    return { data: { app_name: known, definition, lines }, text: lines.join("\n") };
  }
}

async function previewOf({ client }: Context, parent: string, branch: string | undefined): Promise<string | undefined> {
  for await (const preview of client.list("GET /v1/apps/:app_name/previews", { params: { app_name: parent } }))
    if (preview.branch === branch) return preview.app_name;
  return undefined;
}

/** Machines suspend when idle and have shared CPUs, and each group has one. */
export const asPreview = (definition: Definition): Definition => ({
  ...definition,
  groups: definition.groups.map((group): Group => ({ ...group, config: small(group.config) })),
});

/** Maximum memory of one shared CPU. */
const CPU_MEMORY_MB = 2048;

function small({ services, guest, size, ...rest }: MachineConfig): MachineConfig {
  const asleep = (services ?? []).map((service) => ({
    ...service,
    autostop: "suspend" as const,
    autostart: true,
    min_machines_running: 0,
  }));
  const memory_mb = guest?.memory_mb;
  const cpus = Math.max(1, Math.ceil((memory_mb ?? 0) / CPU_MEMORY_MB));
  const shared = { cpu_kind: "shared" as const, cpus, ...(memory_mb === undefined ? {} : { memory_mb }) };
  return {
    ...rest,
    ...(services ? { services: asleep } : {}),
    ...(guest ? { guest: shared } : {}),
    ...(size === undefined ? {} : { guest: shared }),
  };
}
