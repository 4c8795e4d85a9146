/** Removes names of images; what nothing needs any more goes at the next clean-up. */
import { PLATFORM } from "#machines/runtime/image-source.ts";
import type { Imported } from "./imported.ts";
import { refuseInUse, refuseReleased } from "./in-use.ts";
import { notHere } from "./intake.ts";
import type { NameRecord } from "./names.ts";
import type { Reference } from "./reference.ts";
import { isUntagged, type Store, untagged } from "./store.ts";

export async function removeName(
  store: Store,
  imported: Imported | undefined,
  reference: Reference,
  owner: string,
): Promise<void> {
  const { names, holds } = store;
  const found = await imported?.find({ ...reference, digest: undefined }, owner);
  const record = names.get(owner, reference.name);
  if (imported && found) {
    refuseInUse(found, await imported.users(found));
    const keep = !(await imported.isNamedTwice(found.digest)) && (await isReleased(store, found));
    await imported.remove(found, { keep });
  } else if (record) {
    const others = names.list().some((other) => other !== record && other.digest === record.digest);
    refuseInUse(record, others ? [] : holds.of(record.digest, owner));
    if (!others && (await isReleased(store, record)))
      await names.put({ ...record, name: untagged(record, record.digest) });
    await names.remove(record);
  } else notHere(reference);
}

/** Whether a release uses the image, so that only its tag is removed. Refuses when it has no tag. */
async function isReleased(
  store: Store,
  { owner, ...record }: Pick<NameRecord, "name" | "digest" | "owner">,
): Promise<boolean> {
  // An organization's image serves its own apps only.
  const mayNeed = (org_id: string): boolean => owner === PLATFORM || org_id === owner;
  const all = await store.releases();
  const needed = all.filter(({ digest, org_id }) => digest === record.digest && mayNeed(org_id));
  if (needed.length > 0 && isUntagged(record)) refuseReleased(record, needed);
  return needed.length > 0;
}
