/** The file from which process 1 reads what to start; native/init.c describes its format. */
import type { User } from "./rootfs/users.ts";

export interface GuestProcess {
  argv: string[];
  variables: string[];
  folder: string;
  user: User;
  /** It starts before the others, which wait until it is ready, and ends after them. At most one. */
  sidecar?: boolean;
}

export function bootFile(processes: readonly GuestProcess[]): Buffer {
  const texts = processes.flatMap(({ user, folder, argv, variables, sidecar = false }) => [
    sidecar ? "1" : "0",
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
