/** The platform as a process of its own, with real machines from a folder of images: `runc-daemon.ts DATA_DIR IMAGES`. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readSettings } from "#core/settings.ts";
import { startPlatform } from "../../src/platform.ts";
import { type FixtureImage, fixtureImages } from "../rootfs.ts";

const [data_dir = "", folder = ""] = process.argv.slice(2);
const folders = readdirSync(folder, { withFileTypes: true }).filter((entry) => entry.isDirectory());
const images = Object.fromEntries(
  folders.map(({ name }) => [name, { layers: [join(folder, name)], config: configOf(join(folder, `${name}.json`)) }]),
);
const settings = readSettings(["--data-dir", data_dir, "--listen", "127.0.0.1:0", "--driver", "runc"], process.env);
const platform = await startPlatform(settings, { images: fixtureImages(images) });
process.on("SIGTERM", () => void platform.close().then(() => process.exit(0)));
process.stdout.write(`ready ${platform.base_url}\n`);

/** What a file beside the folder says about how to run it. */
function configOf(file: string): NonNullable<FixtureImage["config"]> {
  return existsSync(file) ? (JSON.parse(readFileSync(file, "utf8")) as NonNullable<FixtureImage["config"]>) : {};
}
