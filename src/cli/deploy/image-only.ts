/** Deploys an image where there is no app file: the newest release with another image, or a first release. */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { ClientError } from "#client/client.ts";
import { GROUP_KEY, type Group } from "../app-file/groups.ts";
import { APP_FILES } from "../app-file/names.ts";
import { type Context, type Input, textOption, UsageError } from "../verb.ts";
import { type Definition, newestDefinition } from "./definition.ts";
import { machinesOf } from "./machines.ts";
import { type Running, type Strategy, ungrouped } from "./plan.ts";

/** The image of a deploy that has no file, or undefined. */
export function imageWithoutFile(input: Input, cwd: string): string | undefined {
  const named = textOption(input, "file") ?? textOption(input, "config");
  return named === undefined && !APP_FILES.some((name) => existsSync(join(cwd, name)))
    ? textOption(input, "image")
    : undefined;
}

interface ImageOnly {
  image: string;
  /** The port its server listens on, for a first release. */
  port: string | undefined;
  strategy: Strategy | undefined;
}

interface ImageDeploy {
  definition: Definition;
  /** Its machines were created without a deploy, and are adopted by the release. */
  adopt: boolean;
}

export async function imageDeploy(context: Context, app_name: string, wanted: ImageOnly): Promise<ImageDeploy> {
  const { image, port, strategy } = wanted;
  const [newest, machines] = await Promise.all([
    newestDefinition(context, app_name),
    machinesOf({ context, app_name }),
  ]).catch((thrown: unknown): [undefined, Running[]] => {
    // A new app has neither.
    if (thrown instanceof ClientError && thrown.http === 404) return [undefined, []];
    throw thrown;
  });
  if (newest) return { definition: withImage(newest, app_name, wanted), adopt: false };
  const alike = ungrouped(machines);
  const [first] = alike;
  const group = first ? likeMachines(first, alike, wanted) : firstGroup(image, port);
  return { definition: { image, strategy: strategy ?? "rolling", groups: [group] }, adopt: first !== undefined };
}

function withImage(newest: Definition, app_name: string, { image, port, strategy }: ImageOnly): Definition {
  if (port !== undefined)
    throw new UsageError(`--port is for the first release; ${app_name} keeps the services of its newest one`);
  const { digest: _, reference, ...rest } = newest;
  // A process group with an image of its own keeps it.
  const isOf = ({ config }: Group): boolean => config.image === newest.image || config.image === reference;
  const groups = newest.groups.map((group) => (isOf(group) ? { ...group, config: { ...group.config, image } } : group));
  return { ...rest, image, groups, ...(strategy ? { strategy } : {}) };
}

/** The config of the existing machines, with another image. */
function likeMachines(first: Running, all: readonly Running[], { image, port }: ImageOnly): Group {
  const isOther = ({ config }: Running): boolean =>
    config.image.split("@")[0] !== first.config.image.split("@")[0] || (config.mounts ?? []).length > 0;
  if (all.some(isOther))
    throw new UsageError(
      "its machines were made one by one, with several images or with volumes: write a hangar.toml and deploy that",
    );
  if (port !== undefined) throw new UsageError("--port is for an app without machines; these keep their services");
  const metadata = { ...first.config.metadata, [GROUP_KEY]: "app" };
  return { name: "app", config: { ...first.config, image, metadata } };
}

/** As `[http_service]` would make it. */
function firstGroup(image: string, port: string | undefined): Group {
  const metadata = { [GROUP_KEY]: "app" };
  if (port === undefined) return { name: "app", config: { image, metadata } };
  if (!/^\d{1,5}$/.test(port) || Number(port) < 1 || Number(port) > 65_535)
    throw new UsageError(`--port is a number from 1 to 65535, not ${port}`);
  const ports = [
    { port: 80, handlers: ["http" as const] },
    { port: 443, handlers: ["tls" as const, "http" as const] },
  ];
  const service = { protocol: "tcp" as const, internal_port: Number(port), autostart: true, ports };
  return { name: "app", config: { image, metadata, services: [service] } };
}
