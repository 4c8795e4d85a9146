/**
 * The types of secret keys, by fly-go's names. Signatures and ciphertexts are those of the standards and of NaCl, so that
 * other programs with the same key can verify and decrypt them. A ciphertext begins with its random nonce.
 */
import {
  createHmac,
  createPrivateKey,
  createPublicKey,
  generateKeyPairSync,
  type KeyObject,
  randomBytes,
  sign,
  verify,
} from "node:crypto";
import { xsalsa20poly1305 } from "@noble/ciphers/salsa.js";
import { sameSecret } from "#core/same-secret.ts";
import { xaesOpen, xaesSeal } from "./xaes.ts";

export interface Algorithm {
  generate(): Buffer;
  /** What a key must be, when this one is not. */
  problem(key: Buffer): string | undefined;
  publicKey?(key: Buffer): Buffer;
  signing?: {
    sign(key: Buffer, message: Buffer): Buffer;
    verify(key: Buffer, message: Buffer, signature: Buffer): boolean;
  };
  encrypting?: {
    /** Whether it authenticates associated data. */
    associates: boolean;
    seal(key: Buffer, plain: Buffer, associated: Buffer): Buffer;
    /** Undefined when the ciphertext is not of this key. */
    open(key: Buffer, sealed: Buffer, associated: Buffer): Buffer | undefined;
  };
}

const KEY_BYTES = 32;
const MOST_KEY_BYTES = 1024;

const exactly = (key: Buffer): string | undefined => (key.length === KEY_BYTES ? undefined : `${KEY_BYTES} bytes`);

/** The first `length` bytes of an HMAC. */
function hmac(digest: string, length: number, problem: Algorithm["problem"]): Algorithm {
  const mac = (key: Buffer, message: Buffer) => createHmac(digest, key).update(message).digest().subarray(0, length);
  return {
    generate: () => randomBytes(length),
    problem,
    signing: { sign: mac, verify: (key, message, signature) => sameSecret(mac(key, message), signature) },
  };
}

/** RFC 7518: a key has at least the length of the hash. */
const hs = (digest: string, length: number): Algorithm =>
  hmac(digest, length, (key) =>
    key.length >= length && key.length <= MOST_KEY_BYTES ? undefined : `${length} to ${MOST_KEY_BYTES} bytes`,
  );

const pkcs8 = (key: Buffer): KeyObject => createPrivateKey({ key, format: "der", type: "pkcs8" });
const P1363 = "ieee-p1363";

/** ECDSA on P-256 with SHA-256. The key is PKCS #8, the public key SPKI, both DER; a signature is r and s, as in JWS. */
const es256: Algorithm = {
  generate: () =>
    generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey.export({ format: "der", type: "pkcs8" }),
  problem(key) {
    try {
      if (pkcs8(key).asymmetricKeyDetails?.namedCurve === "prime256v1") return undefined;
    } catch {
      // Not a key at all.
    }
    return "a P-256 private key, PKCS #8 in DER";
  },
  publicKey: (key) => createPublicKey(pkcs8(key)).export({ format: "der", type: "spki" }),
  signing: {
    sign: (key, message) => sign("sha256", message, { key: pkcs8(key), dsaEncoding: P1363 }),
    verify: (key, message, signature) =>
      verify("sha256", message, { key: createPublicKey(pkcs8(key)), dsaEncoding: P1363 }, signature),
  },
};

/** What PKCS #8 and SPKI put before the 32 bytes of an Ed25519 key (RFC 8410). */
const ED25519 = { private: Buffer.from("302e020100300506032b657004220420", "hex"), public_bytes: 12 } as const;
const edKey = (key: Buffer): KeyObject => pkcs8(Buffer.concat([ED25519.private, key.subarray(0, KEY_BYTES)]));
const edPublic = (key: Buffer): Buffer =>
  createPublicKey(edKey(key)).export({ format: "der", type: "spki" }).subarray(ED25519.public_bytes);

/** Ed25519 with detached signatures. The key is the seed, or NaCl's secret key: the seed and the public key. */
const naclSign: Algorithm = {
  generate: () => randomBytes(KEY_BYTES),
  problem(key) {
    const isSeed = key.length === KEY_BYTES;
    const isPair = key.length === 2 * KEY_BYTES && edPublic(key).equals(key.subarray(KEY_BYTES));
    return isSeed || isPair ? undefined : "a seed of 32 bytes, or seed and public key";
  },
  publicKey: edPublic,
  signing: {
    sign: (key, message) => sign(null, message, edKey(key)),
    verify: (key, message, signature) => verify(null, message, createPublicKey(edKey(key)), signature),
  },
};

const NONCE_BYTES = 24;

/** XSalsa20-Poly1305. */
const secretbox: Algorithm = {
  generate: () => randomBytes(KEY_BYTES),
  problem: exactly,
  encrypting: {
    associates: false,
    seal(key, plain) {
      const nonce = randomBytes(NONCE_BYTES);
      return Buffer.concat([nonce, xsalsa20poly1305(key, nonce).encrypt(plain)]);
    },
    open(key, sealed) {
      try {
        return Buffer.from(
          xsalsa20poly1305(key, sealed.subarray(0, NONCE_BYTES)).decrypt(sealed.subarray(NONCE_BYTES)),
        );
      } catch {
        return undefined;
      }
    },
  },
};

const xaes256gcm: Algorithm = {
  generate: () => randomBytes(KEY_BYTES),
  problem: exactly,
  encrypting: { associates: true, seal: xaesSeal, open: xaesOpen },
};

export const ALGORITHMS: Readonly<Record<string, Algorithm>> = {
  es256,
  hs256: hs("sha256", 32),
  hs384: hs("sha384", 48),
  hs512: hs("sha512", 64),
  /** NaCl's crypto_auth: HMAC-SHA-512, cut to 256 bits. */
  nacl_auth: hmac("sha512", KEY_BYTES, exactly),
  nacl_secretbox: secretbox,
  nacl_sign: naclSign,
  xaes256gcm,
};
