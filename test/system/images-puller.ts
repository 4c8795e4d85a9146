/** Pulls an image again and again from nothing, until it is killed: `images-puller.ts DIR IMAGE`. */
import { join } from "node:path";
import { systemClock } from "#core/clock.ts";
import { silentLog } from "#core/log.ts";
import { openImages } from "#drivers/images/images.ts";

const [dir = "", name = ""] = process.argv.slice(2);
const never = new AbortController().signal;
const settings = { registry_config: undefined, registry_allow_private: [name.split("/")[0] ?? ""] };
const images = await openImages(join(dir, "images"), settings, systemClock, silentLog);
process.stdout.write("begin\n");
for (;;) {
  const ref = await images.resolve(name, "org", never);
  await images.hold({ id: "m", org_id: "org" }, ref, never);
  await images.release("m");
  await images.collect({ dry_run: false, all: true });
}
