import { createHmac, timingSafeEqual } from "node:crypto";
import { decode, encode } from "@msgpack/msgpack";
import { type Caveat, fromWire, toWire, type WireCaveat } from "./caveats.ts";
import { LIMITS } from "./limits.ts";

/**
 * Capability tokens that their holder can narrow offline.
 *
 *   tail₀ = HMAC(root key, id)      tailₙ = HMAC(tailₙ₋₁, caveatₙ)
 *
 * The token carries the id, the caveats and the last tail. Its holder can add a caveat and compute the
 * next tail, but cannot remove one, because that needs the previous tail. Only the issuer has the root key,
 * and recomputes the chain. On the wire: `hm1_` + base64url of msgpack `[id, [caveat…], tail]`.
 */
export interface Macaroon {
  id: string;
  caveats: readonly Caveat[];
  tail: Uint8Array;
}

export const MACAROON_PREFIX = "hm1_";

const chain = (key: Uint8Array, message: Uint8Array): Buffer => createHmac("sha256", key).update(message).digest();

export function mint(rootKey: Uint8Array, id: string, caveats: readonly Caveat[]): Macaroon {
  return attenuate({ id, caveats: [], tail: chain(rootKey, Buffer.from(id)) }, caveats);
}

/** Adds caveats. Needs no key. */
export function attenuate(macaroon: Macaroon, more: readonly Caveat[]): Macaroon {
  let tail = macaroon.tail;
  for (const caveat of more) tail = chain(tail, encode(toWire(caveat)));
  return { id: macaroon.id, caveats: [...macaroon.caveats, ...more], tail };
}

/** Verifies the signature chain. Does not check the caveats. */
export function isGenuine(rootKey: Uint8Array, macaroon: Macaroon): boolean {
  const { tail } = mint(rootKey, macaroon.id, macaroon.caveats);
  return macaroon.tail.length === tail.length && timingSafeEqual(macaroon.tail, tail);
}

export function serialize(macaroon: Macaroon): string {
  const bytes = encode([macaroon.id, macaroon.caveats.map(toWire), macaroon.tail]);
  return MACAROON_PREFIX + Buffer.from(bytes).toString("base64url");
}

/** Why a text is not a valid token. */
export class MacaroonError extends Error {
  override readonly name = "MacaroonError";
}

/** Parses a token. Sizes are checked before decoding; unknown caveats are kept, and refuse. */
export function parse(text: string): Macaroon {
  if (!text.startsWith(MACAROON_PREFIX)) throw new MacaroonError(`a created token starts with ${MACAROON_PREFIX}`);
  if (text.length > LIMITS.token_bytes) throw new MacaroonError(`a token has at most ${LIMITS.token_bytes} characters`);
  const body = text.slice(MACAROON_PREFIX.length);
  if (!/^[\w-]+$/.test(body)) throw new MacaroonError("the token is cut off or has a stray character");
  const macaroon = unpack(Buffer.from(body, "base64url"));
  // Only the canonical encoding is accepted.
  if (spelling(macaroon) !== text) throw new MacaroonError("the token is damaged");
  return macaroon;
}

/** Undefined for what can be decoded but not encoded, such as a caveat nested too deep. */
function spelling(macaroon: Macaroon): string | undefined {
  try {
    return serialize(macaroon);
  } catch {
    return undefined;
  }
}

function unpack(bytes: Uint8Array): Macaroon {
  let parts: unknown;
  try {
    parts = decode(bytes, {
      maxStrLength: LIMITS.token_bytes,
      maxBinLength: 64,
      maxArrayLength: 256,
      maxMapLength: 256,
    });
  } catch (cause) {
    throw new MacaroonError("the token is cut off or damaged", { cause });
  }
  if (!Array.isArray(parts) || parts.length !== 3) throw new MacaroonError("the token is damaged");
  const [id, caveats, tail] = parts as [unknown, unknown, unknown];
  if (typeof id !== "string" || !Array.isArray(caveats) || !(tail instanceof Uint8Array)) {
    throw new MacaroonError("the token is damaged");
  }
  if (caveats.length > LIMITS.token_caveats) {
    throw new MacaroonError(`a token has at most ${LIMITS.token_caveats} caveats`);
  }
  return { id, caveats: (caveats as WireCaveat[]).map((caveat) => fromWire(caveat, 0)), tail };
}
