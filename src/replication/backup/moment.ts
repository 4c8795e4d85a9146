/** The moment that a restore goes back to, as people write it. */
export interface Moment {
  at_ms?: number;
  txid?: number;
}

/** Throws an error that says what a good value looks like. */
export function momentIn({ at, txid }: { at?: string | undefined; txid?: string | undefined }): Moment {
  return { ...(at === undefined ? {} : { at_ms: timeOf(at) }), ...(txid === undefined ? {} : { txid: txidOf(txid) }) };
}

function timeOf(text: string): number {
  const ms = Date.parse(text);
  if (Number.isNaN(ms)) throw new Error(`${JSON.stringify(text)} is not a time such as 2026-01-02T03:04:05Z`);
  return ms;
}

function txidOf(text: string): number {
  if (!/^[0-9a-f]{1,16}$/.test(text)) throw new Error(`${JSON.stringify(text)} is not a txid such as 00000000000000ff`);
  return Number.parseInt(text, 16);
}
