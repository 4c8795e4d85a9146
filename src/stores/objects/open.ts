import { fileURLToPath } from "node:url";
import type { Clock } from "#core/clock.ts";
import type { ObjectStore } from "#core/objects.ts";
import type { ObjectsSetting } from "#core/settings.ts";
import { LocalObjects } from "./local.ts";

/** The store that the settings name; a folder of the data dir when they name none. */
export async function openObjects(setting: ObjectsSetting, folder: string, clock: Clock): Promise<ObjectStore> {
  const { url, region, access_key, secret_key } = setting;
  if (url === undefined || url.protocol === "file:") {
    const local = new LocalObjects(url ? fileURLToPath(url) : folder);
    await local.sweep(clock.now());
    return local;
  }
  // Loaded only where there is a bucket.
  const { S3Objects } = await import("./s3.ts");
  const [bucket = "", ...path] = url.pathname.split("/").filter(Boolean);
  const prefix = path.length > 0 ? `${path.join("/")}/` : "";
  return new S3Objects({ endpoint: `${url.origin}/${bucket}`, prefix, region, access_key, secret_key }, clock);
}
