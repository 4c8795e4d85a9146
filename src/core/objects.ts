import { assert } from "./assert.ts";

/**
 * Where large things are kept whole: a folder, or an S3-compatible bucket. Keys are paths with slashes. An
 * object is whole or not there, whatever happens while it is put; it is replaced, never changed.
 *
 * It is in `core` because modules that do not import each other store objects in it, each under a prefix of
 * its own. Implemented in stores/objects/, examined by `objects.suite.ts`.
 */
export interface ObjectStore {
  /** Where that is, for people; without credentials. */
  readonly place: string;
  /**
   * Stores `body`, durably before it resolves, and answers true. With `if_absent` an object that is there stays,
   * and the answer is false; a store that cannot promise that refuses instead of guessing.
   */
  put(key: string, body: ObjectBody, how?: { if_absent?: boolean }): Promise<boolean>;
  /** The whole object, or `length` bytes from `offset`; fewer at its end. Undefined when there is none. */
  get(key: string, range?: ObjectRange): Promise<Buffer | undefined>;
  /** Writes the object to the file at `path`. False, and no file, when there is none. */
  getFile(key: string, path: string): Promise<boolean>;
  head(key: string): Promise<ObjectInfo | undefined>;
  /** Every object whose key begins with `prefix`, by the bytes of their keys. */
  list(prefix: string): Promise<ObjectInfo[]>;
  /** What is not there is no mistake. */
  delete(keys: readonly string[]): Promise<void>;
}

/** Bytes, or a file that holds them: what does not fit in memory is sent from where it is. */
export type ObjectBody = Uint8Array | { file: string };

export interface ObjectRange {
  offset: number;
  length: number;
}

export interface ObjectInfo {
  key: string;
  size: number;
}

/** The part of a store whose keys begin with `prefix`, as a store of its own. */
export function scoped(store: ObjectStore, prefix: string): ObjectStore {
  return {
    place: `${store.place}${store.place.endsWith("/") ? "" : "/"}${prefix}`,
    put: (key, body, how) => store.put(prefix + key, body, how),
    get: (key, range) => store.get(prefix + key, range),
    getFile: (key, path) => store.getFile(prefix + key, path),
    async head(key) {
      const found = await store.head(prefix + key);
      return found && { ...found, key };
    },
    async list(inner) {
      const found = await store.list(prefix + inner);
      return found.map(({ key, size }) => ({ key: key.slice(prefix.length), size }));
    },
    delete: (keys) => store.delete(keys.map((key) => prefix + key)),
  };
}

/** Against our own mistakes: keys are made from ids, and none may leave its place. */
export function checkKey(key: string): void {
  assert(/^[\w.~=-]+(\/[\w.~=-]+)*$/.test(key) && !/(^|\/)\.{1,2}(\/|$)/.test(key), `${key} is a key of an object`);
}
