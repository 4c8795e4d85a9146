/** Machines that run one command and are destroyed: release commands, one-off groups, `hangar run --once`. */
import type { MachineConfig } from "#client/api.ts";
import { RUN_KEY, RUN_KIND_KEY } from "#core/run-metadata.ts";

const COMMAND_CHARS = 200;

/** The config without services and checks; with this command, if one is given. */
export function oneOffConfig(
  config: MachineConfig,
  command: readonly string[] | undefined,
  kind: "once" | "release" = "once",
): MachineConfig {
  const { services: _, checks: __, statics: ___, metrics: ____, schedule: _____, ...more } = config;
  // The volume is another machine's, or mounted for this one alone.
  const { mounts: ______, sqlite: _______, ...rest } = more;
  const { exec, ...init } = rest.init ?? {};
  const argv = command ?? exec ?? [...(init.entrypoint ?? []), ...(init.cmd ?? [])];
  return {
    ...rest,
    metadata: {
      [RUN_KEY]: argv.join(" ").slice(0, COMMAND_CHARS) || "(the image's own command)",
      ...(kind === "release" ? { [RUN_KIND_KEY]: kind } : {}),
    },
    ...(command ? { init: { ...init, cmd: [...command] } } : {}),
    restart: { policy: "no" },
  };
}
