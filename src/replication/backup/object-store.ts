/**
 * Where backups go. Keys are paths with slashes; an object is whole or not there, and is never changed.
 * Each implementation passes `object-store.suite.ts`.
 */
export interface ObjectStore {
  /** Stores the file at `path` under `key`, durably before it resolves. What was there before is replaced. */
  put(key: string, path: string): Promise<void>;
  /** Writes the object to the file at `path`. False, and no file, when there is none. */
  get(key: string, path: string): Promise<boolean>;
  /** The keys that begin with `prefix`, in ascending order. */
  list(prefix: string): Promise<string[]>;
  delete(key: string): Promise<void>;
}
