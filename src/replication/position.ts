/**
 * A replication position: how many transactions a database has seen and what it looks like after the last one.
 * Two nodes with the same position have, byte for byte, the same database.
 */
export interface Position {
  /** Starts at 1 and is incremented per transaction. A number: 2^53 are enough. */
  readonly txid: number;
  readonly checksum: bigint;
}

/** Before the first transaction. */
export const NOWHERE: Position = { txid: 0, checksum: 0n };

/** The checksum of an empty database: only the flag bit. */
export const NO_PAGES = 1n << 63n;

export function hex16(value: number | bigint): string {
  return value.toString(16).padStart(16, "0");
}

/** `txid/checksum`, 33 characters. */
export function formatPosition(position: Position): string {
  return `${hex16(position.txid)}/${hex16(position.checksum)}`;
}

/** Undefined when the text is invalid. */
export function parsePosition(text: string): Position | undefined {
  const match = /^([0-9a-f]{16})\/([0-9a-f]{16})$/.exec(text.trim());
  if (!match) return undefined;
  const txid = Number(`0x${match[1]}`);
  return Number.isSafeInteger(txid) ? { txid, checksum: BigInt(`0x${match[2]}`) } : undefined;
}
