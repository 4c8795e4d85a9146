/**
 * How a database lies in an object store. Names alone say what follows from what:
 *
 *   NAME/snapshot/<txid>-<checksum>.ltx            the whole database
 *   NAME/changes/<first>-<last>-<checksum>.ltx     several transactions merged into one LTX file
 *
 * The checksum is the one after the last transaction. A history that was dropped after a change of primary stays
 * here beside the one that went on; which of the two a file belongs to is decided by its checksums.
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

export function snapshotKey(name: string, { txid, checksum }: Position): string {
  return `${name}/snapshot/${hex16(txid)}-${hex16(checksum)}.ltx`;
}

export function changesKey(name: string, first: number, { txid, checksum }: Position): string {
  return `${name}/changes/${hex16(first)}-${hex16(txid)}-${hex16(checksum)}.ltx`;
}

const number = (hex: string | undefined): number => Number(`0x${hex}`);

export function parseSnapshot(key: string): ArchivedSnapshot | undefined {
  const match = /\/snapshot\/([0-9a-f]{16})-([0-9a-f]{16})\.ltx$/.exec(key);
  return match ? { key, position: { txid: number(match[1]), checksum: BigInt(`0x${match[2]}`) } } : undefined;
}

export function parseChanges(key: string): ArchivedChanges | undefined {
  const match = /\/changes\/([0-9a-f]{16})-([0-9a-f]{16})-([0-9a-f]{16})\.ltx$/.exec(key);
  if (!match) return undefined;
  return { key, first: number(match[1]), position: { txid: number(match[2]), checksum: BigInt(`0x${match[3]}`) } };
}
