import type { ImageLayer } from "#machines/runtime/image-source.ts";
import type { Entry } from "#network/directory.ts";
import type { StaticTable } from "./table.ts";

type Statics = Exclude<NonNullable<Entry["config"]["statics"]>, readonly unknown[]>;

/** One static site of an app: what serves it, or why nothing does. */
export interface StaticPlace {
  url_prefix: string;
  /** For display. */
  source: string;
  /** The bucket, if its files are in one. */
  bucket?: string;
  table?: StaticTable;
  problem?: string;
}

/** Valid S3 bucket names; no slash and no `..`, which would reach another bucket. */
const BUCKET = /^[a-z0-9](?:[a-z0-9-]|\.(?!\.)){1,61}[a-z0-9]$/;
const climbs = (path: string): boolean => path.split("/").includes("..");

/** The app's static sites. The newest machine's config counts. */
export function staticsOf(
  machines: readonly Entry[],
  layers: (machine: Entry) => ImageLayer[] | undefined,
): StaticPlace[] {
  const newest = machines.reduce<Entry | undefined>((a, b) => (a && a.instance_id > b.instance_id ? a : b), undefined);
  const wanted = newest?.config.statics;
  if (!newest || !wanted) return [];
  return (Array.isArray(wanted) ? wanted : [wanted]).map((one) => {
    const prefix = one.url_prefix.startsWith("/") ? one.url_prefix : `/${one.url_prefix}`;
    return one.tigris_bucket ? inBucket(prefix, one, one.tigris_bucket) : inImage(prefix, one, newest, layers(newest));
  });
}

function inBucket(prefix: string, { guest_path: path, index_document: index }: Statics, bucket: string): StaticPlace {
  const place = { url_prefix: prefix, source: `${path} in the bucket ${bucket}`, bucket };
  if (!BUCKET.test(bucket)) return { ...place, problem: `${bucket} is not the name of a bucket` };
  if (climbs(path) || climbs(index ?? "")) return { ...place, problem: "a path in a bucket may not hold `..`" };
  return { ...place, table: { prefix, source: { kind: "bucket", bucket, path }, index } };
}

function inImage(prefix: string, one: Statics, { id }: Entry, layers: ImageLayer[] | undefined): StaticPlace {
  const place = { url_prefix: prefix, source: `${one.guest_path} in the image of machine ${id}` };
  if (!layers) return { ...place, problem: "the files of that image are not here; they come when the machine starts" };
  return { ...place, table: { prefix, source: { kind: "layers", layers, path: one.guest_path }, index: undefined } };
}
