import { assert } from "./assert.ts";

/**
 * Stores objects in a directory or an S3-compatible bucket. Keys are paths with slashes. Puts are atomic; objects are
 * replaced, never modified. It is in `core` because modules that do not import each other store objects in it, each
 * under its own prefix. Implemented in stores/objects/, tested by `objects.suite.ts`.
 */
export interface ObjectStore {
  /** Its location for display, without credentials. */
  readonly place: string;
  /**
   * Stores `body` durably and returns true. With `if_absent` an existing object stays, and the result is false; a store
   * that cannot guarantee that refuses.
   */
  put(key: string, body: ObjectBody, how?: { if_absent?: boolean }): Promise<boolean>;
  /** The whole object, or `length` bytes from `offset`, fewer at its end. Undefined when it does not exist. */
  get(key: string, range?: ObjectRange): Promise<Buffer | undefined>;
  /** Writes the object to the file at `path`. Returns false, without a file, when it does not exist. */
  getFile(key: string, path: string): Promise<boolean>;
  head(key: string): Promise<ObjectInfo | undefined>;
  /** Every object whose key begins with `prefix`, by the bytes of their keys. */
  list(prefix: string): Promise<ObjectInfo[]>;
  /** Missing objects are no error. */
  delete(keys: readonly string[]): Promise<void>;
}

/** Bytes, or a file: large content is streamed. */
export type ObjectBody = Uint8Array | { file: string };

export interface ObjectRange {
  offset: number;
  length: number;
}

export interface ObjectInfo {
  key: string;
  size: number;
}

/** A view of a store whose keys begin with `prefix`. */
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

/** An assertion: keys are made from ids and must not leave their prefix. */
export function checkKey(key: string): void {
  assert(/^[\w.~=-]+(\/[\w.~=-]+)*$/.test(key) && !/(^|\/)\.{1,2}(\/|$)/.test(key), `${key} is a key of an object`);
}
