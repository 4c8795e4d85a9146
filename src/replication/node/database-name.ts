/** Files beside a database that belong to it. */
const COMPANIONS = /-(wal|shm|journal|pos|lock)$|\.incoming$/;
const NAME_CHARS = 200;

/** Whether a file of this name can be a database of a node. */
export function isDatabaseName(name: string): boolean {
  return name.length <= NAME_CHARS && /^[^./\\\0][^/\\\0]*$/.test(name) && !COMPANIONS.test(name);
}
