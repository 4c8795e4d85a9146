import { fileURLToPath } from "node:url";
import type { Clock } from "#core/clock.ts";
import type { ObjectStore } from "#core/objects.ts";
import type { ObjectsSetting } from "#core/settings.ts";
import { LocalObjects } from "./local.ts";

/** Opens the configured store; by default a directory of the data dir. */
export async function openObjects(setting: ObjectsSetting, folder: string, clock: Clock): Promise<ObjectStore> {
  const { url, region, access_key, secret_key } = setting;
  if (url === undefined || url.protocol === "file:") {
    const local = new LocalObjects(url ? fileURLToPath(url) : folder);
    await local.sweep(clock.now());
    return local;
  }
  // Loaded only for buckets.
  const { S3Objects } = await import("./s3.ts");
  const [bucket = "", ...path] = url.pathname.split("/").filter(Boolean);
  const prefix = path.length > 0 ? `${path.join("/")}/` : "";
  return new S3Objects({ endpoint: `${url.origin}/${bucket}`, prefix, region, access_key, secret_key }, clock);
}
