/** Encodes DER, the binary form of certificates, as far as self-signed ones need it. */
const concat = (parts: readonly Uint8Array[]): Buffer => Buffer.concat(parts);

function lengthBytes(length: number): Buffer {
  if (length < 128) return Buffer.from([length]);
  const bytes: number[] = [];
  for (let rest = length; rest > 0; rest = Math.floor(rest / 256)) bytes.unshift(rest % 256);
  return Buffer.from([128 + bytes.length, ...bytes]);
}

export const tagged = (tag: number, ...parts: readonly Uint8Array[]): Buffer => {
  const body = concat(parts);
  return concat([Buffer.from([tag]), lengthBytes(body.length), body]);
};

export const sequence = (...parts: readonly Uint8Array[]): Buffer => tagged(0x30, ...parts);
export const set = (...parts: readonly Uint8Array[]): Buffer => tagged(0x31, ...parts);
export const octets = (bytes: Uint8Array): Buffer => tagged(0x04, bytes);
/** A bit string of whole bytes. */
export const bits = (bytes: Uint8Array): Buffer => tagged(0x03, Buffer.from([0]), bytes);
export const utf8 = (text: string): Buffer => tagged(0x0c, Buffer.from(text));
export const yes = Buffer.from([0x01, 0x01, 0xff]);

/** A non-negative integer, big-endian. */
export function integer(bytes: Uint8Array | number): Buffer {
  const raw = typeof bytes === "number" ? Buffer.from([bytes]) : Buffer.from(bytes);
  return tagged(0x02, (raw[0] ?? 0) >= 128 ? concat([Buffer.from([0]), raw]) : raw);
}

export function objectId(dotted: string): Buffer {
  const [first = 0, second = 0, ...rest] = dotted.split(".").map(Number);
  const bytes = [first * 40 + second];
  for (const number of rest) {
    const groups = [number & 127];
    for (let left = number >> 7; left > 0; left >>= 7) groups.unshift((left & 127) | 128);
    bytes.push(...groups);
  }
  return tagged(0x06, Buffer.from(bytes));
}

/** Certificate time: UTCTime before 2050, GeneralizedTime from then on. */
export function time(ms: number): Buffer {
  const text = new Date(ms).toISOString().replace(/[-:T]/g, "").slice(0, 14);
  const short = Number(text.slice(0, 4)) < 2050;
  return tagged(short ? 0x17 : 0x18, Buffer.from(`${short ? text.slice(2) : text}Z`));
}

export function pem(label: string, der: Uint8Array): string {
  const lines =
    Buffer.from(der)
      .toString("base64")
      .match(/.{1,64}/g) ?? [];
  return `-----BEGIN ${label}-----\n${lines.join("\n")}\n-----END ${label}-----\n`;
}
