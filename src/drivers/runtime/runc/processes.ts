/** Determines the processes of a machine: the image's command, overridden by the machine's config. */
import type { Launch } from "#machines/runtime/driver.ts";
import type { HeldImage, ImageConfig } from "#machines/runtime/image-source.ts";
import type { GuestTree } from "../../linux/guest-tree.ts";
import type { GuestProcess } from "./boot-file.ts";
import { environmentOf } from "./environment.ts";
import { userOf } from "./rootfs/users.ts";
import { sqliteNode } from "./sqlite/node-process.ts";

export function processesOf(
  launch: Launch,
  { config: image }: HeldImage,
  tree: Pick<GuestTree, "read">,
): GuestProcess[] {
  const { config } = launch;
  const wanted = config.processes?.length ? config.processes : [{}];
  const own = wanted.map((process): GuestProcess => {
    const user = userOf(tree, process.user ?? image.user);
    const variables: Record<string, string> = { HOME: user.home, ...environmentOf(launch, image, process) };
    return {
      argv: argvOf(config.init ?? {}, process, image),
      variables: Object.entries(variables).map(([name, value]) => `${name}=${value}`),
      // Some tools omit the leading slash.
      folder: image.working_dir.startsWith("/") ? image.working_dir : `/${image.working_dir}`,
      user,
    };
  });
  // Last in the list, because the first process has the machine's terminal.
  return config.sqlite ? [...own, sqliteNode(config.sqlite, launch)] : own;
}

interface Command {
  exec?: readonly string[];
  entrypoint?: readonly string[];
  cmd?: readonly string[];
}

/** `exec` replaces everything; otherwise entrypoint and cmd replace their own part. */
function argvOf(init: Command, process: Command, image: ImageConfig): string[] {
  const exec = some(process.exec) ?? some(init.exec);
  const entrypoint = some(process.entrypoint) ?? some(init.entrypoint) ?? image.entrypoint;
  const cmd = some(process.cmd) ?? some(init.cmd) ?? image.cmd;
  const argv = exec ?? [...entrypoint, ...cmd];
  if (argv.length === 0)
    throw new Error("neither the image nor the config says what to run; set init.exec or init.cmd");
  if ([...argv].some((argument) => argument.includes("\0"))) throw new Error("a command holds a zero byte");
  return [...argv];
}

const some = (list: readonly string[] | undefined): readonly string[] | undefined => (list?.length ? list : undefined);
