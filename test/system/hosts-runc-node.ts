/** A process of a platform with real machines from a folder of images: `hosts-runc-node.ts IMAGES [settings]`. */
import { readdirSync } from "node:fs";
import { join } from "node:path";
import { readSettings } from "#core/settings.ts";
import { startPlatform } from "../../src/platform.ts";
import { fixtureImages } from "../rootfs.ts";

const [folder = "", ...args] = process.argv.slice(2);
const images = Object.fromEntries(readdirSync(folder).map((name) => [name, { layers: [join(folder, name)] }]));
const platform = await startPlatform(readSettings(args, process.env), { images: fixtureImages(images) });
process.on("SIGTERM", () => void platform.close().then(() => process.exit(0)));
process.stdout.write(`ready ${platform.host_ids[0] ?? platform.base_url}\n`);
