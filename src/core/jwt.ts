/**
 * JSON web tokens: compact serialization (RFC 7515), verified strictly. The key determines the algorithm, never the
 * token, which prevents algorithm confusion; only the canonical form is accepted.
 */
import { createHash, createPublicKey, type JsonWebKey, type KeyObject, sign, verify } from "node:crypto";
import { promisify } from "node:util";

export type Alg = "RS256" | "ES256";
export const ALGS: readonly Alg[] = ["RS256", "ES256"];

/** A published public key. */
export interface PublicJwk extends JsonWebKey {
  kid: string;
  alg: Alg;
  use: "sig";
}

export type Claims = Record<string, unknown>;

/** Why a token is invalid. */
export class TokenRefused extends Error {
  override readonly name = "TokenRefused";
}

const signAsync = promisify(sign);
const verifyAsync = promisify(verify);
const SEGMENT = /^[A-Za-z0-9_-]+$/;

/** ECDSA signatures in JWS form: r and s concatenated. */
const withEncoding = <Key extends KeyObject>(alg: Alg, key: Key) =>
  alg === "ES256" ? { key, dsaEncoding: "ieee-p1363" as const } : { key };

/** Signs in another thread: RSA takes milliseconds. */
export async function signToken(
  claims: Claims,
  key: { kid: string; alg: Alg; private_key: KeyObject },
): Promise<string> {
  const { kid, alg, private_key } = key;
  const text = `${encode({ alg, typ: "JWT", kid })}.${encode(claims)}`;
  const signature = await signAsync("sha256", Buffer.from(text), withEncoding(alg, private_key));
  return `${text}.${signature.toString("base64url")}`;
}

export interface Expected {
  issuer: string;
  audience: string;
  now_ms: number;
}

/** Tolerated clock skew. */
const LEEWAY_S = 5;

/** Verifies a token's signature, audience and validity, and returns its claims. */
export async function verifyToken(token: string, keys: readonly PublicJwk[], expected: Expected): Promise<Claims> {
  const { header, claims, text, signature } = splitToken(token);
  const jwk = keys.find(({ kid }) => kid === header["kid"]);
  if (!jwk) throw new TokenRefused("the token is signed with a key that is not published");
  if (header["alg"] !== jwk.alg)
    throw new TokenRefused(`the token must be signed with ${jwk.alg}, its key's algorithm`);
  if (header["crit"] !== undefined) throw new TokenRefused("the token requires an extension");
  const key = createPublicKey({ key: jwk, format: "jwk" });
  if (!(await verifyAsync("sha256", text, withEncoding(jwk.alg, key), signature)))
    throw new TokenRefused("the signature is wrong");
  checkClaims(claims, expected);
  return claims;
}

function checkClaims({ iss, aud, exp, nbf }: Claims, { issuer, audience, now_ms }: Expected): void {
  const now = now_ms / 1000;
  if (iss !== issuer) throw new TokenRefused("the token is another issuer's");
  if (aud !== audience) throw new TokenRefused(`the token is for another audience; request one for ${audience}`);
  if (typeof exp !== "number" || now >= exp + LEEWAY_S) throw new TokenRefused("the token has expired");
  if (typeof nbf !== "number" || now < nbf - LEEWAY_S) throw new TokenRefused("the token is not valid yet");
}

/** The parts of a token, unverified. */
export function splitToken(token: string): { header: Claims; claims: Claims; text: Buffer; signature: Buffer } {
  const parts = token.split(".");
  const [header = "", claims = "", signature = ""] = parts;
  if (parts.length !== 3 || !parts.every((part) => SEGMENT.test(part))) throw new TokenRefused("this is not a token");
  return {
    header: decode(header),
    claims: decode(claims),
    text: Buffer.from(`${header}.${claims}`),
    signature: decodeBytes(signature),
  };
}

const encode = (value: object): string => Buffer.from(JSON.stringify(value)).toString("base64url");

/** Accepts only the canonical encoding. */
function decodeBytes(text: string): Buffer {
  const bytes = Buffer.from(text, "base64url");
  if (bytes.toString("base64url") !== text) throw new TokenRefused("this is not a token");
  return bytes;
}

function decode(text: string): Claims {
  try {
    const value: unknown = JSON.parse(decodeBytes(text).toString());
    if (value !== null && typeof value === "object" && !Array.isArray(value)) return value as Claims;
  } catch {
    // Reported below.
  }
  throw new TokenRefused("this is not a token");
}

/** The key id: a hash of the key (RFC 7638), the same in every process. */
export function thumbprint(jwk: JsonWebKey): string {
  const { kty, n, e, crv, x, y } = jwk;
  const members = kty === "RSA" ? { e, kty, n } : { crv, kty, x, y };
  return createHash("sha256").update(JSON.stringify(members)).digest("base64url");
}
