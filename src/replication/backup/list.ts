/** What a backup can restore: its databases, and from when to when. */
import { isoTime } from "#core/clock.ts";
import type { ObjectStore } from "#core/objects.ts";
import { decodeHeader, LTX_HEADER_BYTES } from "../ltx/codec.ts";
import { type BackedUp, databasePrefix, listBackups } from "./archive.ts";

export interface Restorable extends BackedUp {
  /** When the oldest and newest transactions were committed; null when they were pruned meanwhile. */
  from: string | null;
  until: string | null;
}

export async function restorable(store: ObjectStore): Promise<Restorable[]> {
  const keys = (await store.list("")).map(({ key }) => key);
  return await Promise.all(
    listBackups(keys).map(async (found): Promise<Restorable> => {
      const own = keys.filter((key) => key.startsWith(databasePrefix(found.name)));
      const first = own.find((key) => key.includes(`/snapshot/${found.first}-`));
      const last = own.find((key) => key.includes(`/snapshot/${found.last}-`) || key.includes(`-${found.last}-`));
      return { ...found, from: await timeIn(store, first), until: await timeIn(store, last) };
    }),
  );
}

async function timeIn(store: ObjectStore, key: string | undefined): Promise<string | null> {
  const bytes = key === undefined ? undefined : await store.get(key, { offset: 0, length: LTX_HEADER_BYTES });
  return bytes ? isoTime(decodeHeader(bytes).timestamp_ms) : null;
}
