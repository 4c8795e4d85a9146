/** Names in the object store. They come from ids, so that a second try overwrites what the first one left. */
export const PACKS = "packs/";
export const MANIFESTS = "snapshots/";

export const packKey = (name: string): string => `${PACKS}${name}`;
export const manifestKey = (snapshot_id: string): string => `${MANIFESTS}${snapshot_id}`;
/** The snapshot that a pack was written for. */
export const packOwner = (name: string): string => name.slice(0, name.lastIndexOf("-"));
