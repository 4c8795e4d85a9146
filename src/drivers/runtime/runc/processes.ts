/** Determines the processes of a machine: the image's command, overridden by the machine's config. */
import type { Launch } from "#machines/runtime/driver.ts";
import type { HeldImage, ImageConfig } from "#machines/runtime/image-source.ts";
import type { GuestTree } from "../../linux/guest-tree.ts";
import { environmentOf } from "./environment.ts";
import { type User, userOf } from "./rootfs/users.ts";

export interface GuestProcess {
  argv: string[];
  variables: string[];
  folder: string;
  user: User;
}

export function processesOf(
  launch: Launch,
  { config: image }: HeldImage,
  tree: Pick<GuestTree, "read">,
): GuestProcess[] {
  const { config } = launch;
  const wanted = config.processes?.length ? config.processes : [{}];
  return wanted.map((process) => {
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

/** The file from which process 1 reads what to start; native/init.c describes its format. */
export function bootFile(processes: readonly GuestProcess[]): Buffer {
  const texts = processes.flatMap(({ user, folder, argv, variables }) => [
    String(user.uid),
    String(user.gid),
    String(user.groups.length),
    ...user.groups.map(String),
    folder,
    String(argv.length),
    ...argv,
    String(variables.length),
    ...variables,
  ]);
  return Buffer.from(texts.map((text) => `${text.replaceAll("\0", "")}\0`).join(""));
}
