/**
 * A platform whose simulated machines answer at one port of loopback: `last-known-node.ts PORT [settings]`. What it says is
 * `ready` with the API's address, or `waiting` with the reason.
 */
import { readSettings } from "#core/settings.ts";
import { startPlatform } from "../../src/platform.ts";

const [port, ...args] = process.argv.slice(2);
const say = (text: string): void => void process.stdout.write(`${text}\n`);
const platform = await startPlatform(readSettings(args, process.env), {
  reach: () => ({ host: "127.0.0.1", port: Number(port) }),
  onWaiting: (text) => say(`waiting ${text}`),
});
process.on("SIGTERM", () => void platform.close().then(() => process.exit(0)));
await platform.listening();
say(`ready ${platform.base_url}`);
