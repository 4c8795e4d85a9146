/** Machines that run one command and are destroyed: release commands, one-off groups, `hangar run --once`. */
import type { MachineConfig } from "#client/api.ts";

/** The metadata of such machines; its value says what they run. */
export const RUN_KEY = "hangar_run";

const COMMAND_CHARS = 200;

/** The config without what makes it a server; with this command, if one is given. */
export function oneOffConfig(config: MachineConfig, command: readonly string[] | undefined): MachineConfig {
  const { services: _, checks: __, statics: ___, metrics: ____, schedule: _____, mounts: ______, ...rest } = config;
  const { exec, ...init } = rest.init ?? {};
  const words = command ?? exec ?? [...(init.entrypoint ?? []), ...(init.cmd ?? [])];
  return {
    ...rest,
    metadata: { [RUN_KEY]: words.join(" ").slice(0, COMMAND_CHARS) || "(the image's own command)" },
    ...(command ? { init: { ...init, cmd: [...command] } } : {}),
    restart: { policy: "no" },
  };
}
