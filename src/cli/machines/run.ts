import { ClientError } from "#client/client.ts";
import { runOnce } from "../runs/once.ts";
import { firstArgument, type Input, listOption, neededApp, textOption, UsageError, type Verb } from "../verb.ts";
import { machinesRun } from "./verbs.ts";

/** Default ports of the images that come with the platform. */
const BUILT_IN: Record<string, string> = { "hangar/hello": "8080:8080/http" };

/** The shortest way from an image to something that answers. */
export const run: Verb = {
  ...machinesRun,
  words: "run",
  summary:
    "Run an image: create the app if needed, publish its ports, wait until it runs; --once runs a task to completion",
  options: [
    ["-a, --app <app>", "the app it belongs to (default: named after the image)"],
    ["--org <slug>", "organization of the app, if it is created"],
    ["--once", "run it to completion: print its output, exit with its exit code; Ctrl C ends it"],
    ["--release", "with --once: in the image of the app's release, with its environment; all words are the command"],
    ["--raw", "with --once: raw output, with colours and other escape sequences"],
    ...(machinesRun.options ?? []).filter(([flags]) => !flags.includes("--app")),
  ],
  examples: [
    "hangar run hangar/hello",
    "hangar run hangar/hello --port 8099:8080/http --autostop suspend",
    "hangar run --once hangar/hello --app web -- hello --version",
  ],
  async run(context, input) {
    const image = firstArgument(input);
    const once = input.options["once"] === true;
    const of_release = input.options["release"] === true;
    if (of_release && !once) throw new UsageError("--release goes with --once");
    if (of_release) {
      const command = [image, ...input.rest];
      return await runOnce(context, input, { app_name: neededApp(input), image: "", command });
    }
    const app_name = textOption(input, "app") ?? nameOf(image);
    if (input.app_from !== undefined && !once) context.say(`app ${app_name}, from ${input.app_from}`);
    const org_slug = textOption(input, "org") ?? "personal";
    const made = await context.client
      .call("POST /v1/apps", { body: { app_name, org_slug } })
      .catch((thrown: unknown) => {
        // The app exists; the next request fails if this token may not use it.
        if (thrown instanceof ClientError && thrown.body.status === "name_taken") return undefined;
        throw thrown;
      });
    if (made) context.say(`created the app ${app_name}`);
    if (once) return await runOnce(context, input, { app_name, image, command: input.rest });
    const port = BUILT_IN[image];
    const ports = listOption(input, "port").length > 0 || !port ? {} : { port: [port] };
    // Autostart is on even without autostop: a request to a machine that was suspended by hand starts it.
    const autostop = textOption(input, "autostop") ?? "off";
    const options: Input["options"] = { ...input.options, ...ports, app: app_name, autostop };
    return await machinesRun.run(context, { ...input, options });
  },
};

/** `registry/some/image:tag@digest` is called `image`. */
function nameOf(image: string): string {
  const name = (image.split("@")[0] ?? "")
    .split("/")
    .at(-1)
    ?.split(":")[0]
    ?.toLowerCase()
    .replaceAll(/[^a-z0-9-]/g, "-");
  if (!name || !/^[a-z]/.test(name))
    throw new UsageError(`name the app: --app <name> (no name can be derived from ${image})`);
  return name;
}
