/**
 * The layout of a database's backup in an object store. Names alone show which object continues which:
 *
 *   NAME/snapshot/<txid>-<checksum>.ltx            the whole database
 *   NAME/changes/<first>-<last>-<checksum>.ltx     several transactions merged into one LTX file
 *
 * NAME is the database's name, with bytes that a key may not contain encoded as `~` and two hex digits.
 * The checksum is the one after the last transaction. A history that was dropped after a change of primary stays
 * here beside the one that continued; its checksums show to which of the two a file belongs.
 */
import { hex16, type Position } from "../position.ts";

export interface ArchivedSnapshot {
  key: string;
  position: Position;
}

export interface ArchivedChanges {
  key: string;
  first: number;
  position: Position;
}

/** Key prefix of a database. */
export function databasePrefix(name: string): string {
  const plain = /[\w.-]/;
  const encoded = [...Buffer.from(name)].map((byte) => {
    const char = String.fromCharCode(byte);
    return byte < 128 && plain.test(char) ? char : `~${byte.toString(16).padStart(2, "0")}`;
  });
  return `${encoded.join("")}/`;
}

export function snapshotKey(name: string, { txid, checksum }: Position): string {
  return `${databasePrefix(name)}snapshot/${hex16(txid)}-${hex16(checksum)}.ltx`;
}

export function changesKey(name: string, first: number, { txid, checksum }: Position): string {
  return `${databasePrefix(name)}changes/${hex16(first)}-${hex16(txid)}-${hex16(checksum)}.ltx`;
}

const number = (hex: string | undefined): number => Number(`0x${hex}`);

function parseSnapshot(key: string): ArchivedSnapshot | undefined {
  const match = /\/snapshot\/([0-9a-f]{16})-([0-9a-f]{16})\.ltx$/.exec(key);
  return match ? { key, position: { txid: number(match[1]), checksum: BigInt(`0x${match[2]}`) } } : undefined;
}

export function parseChanges(key: string): ArchivedChanges | undefined {
  const match = /\/changes\/([0-9a-f]{16})-([0-9a-f]{16})-([0-9a-f]{16})\.ltx$/.exec(key);
  if (!match) return undefined;
  return { key, first: number(match[1]), position: { txid: number(match[2]), checksum: BigInt(`0x${match[3]}`) } };
}

/** Parsed keys of a backup. */
export interface Archive {
  snapshots: ArchivedSnapshot[];
  changes: ArchivedChanges[];
}

export function archiveIn(keys: readonly string[]): Archive {
  return {
    snapshots: keys.map(parseSnapshot).filter((found) => found !== undefined),
    changes: keys.map(parseChanges).filter((found) => found !== undefined),
  };
}

export interface BackedUp {
  name: string;
  snapshots: number;
  /** The oldest and newest transactions that can be restored. */
  first: string;
  last: string;
}

/** Backups in a store, by database. */
export function listBackups(keys: readonly string[]): BackedUp[] {
  const byName = Map.groupBy(keys, (key) => key.slice(0, key.indexOf("/")));
  return [...byName].flatMap(([prefix, own]) => {
    const { snapshots, changes } = archiveIn(own);
    if (snapshots.length === 0) return [];
    // Not spread into arguments: a month of changes exceeds the limit of a call.
    const first = snapshots.reduce((least, { position }) => Math.min(least, position.txid), Number.POSITIVE_INFINITY);
    const last = [...snapshots, ...changes].reduce((most, { position }) => Math.max(most, position.txid), 0);
    const name = decodeURIComponent(prefix.replaceAll("~", "%"));
    return [{ name, snapshots: snapshots.length, first: hex16(first), last: hex16(last) }];
  });
}
