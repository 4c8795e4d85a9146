import { hash, timingSafeEqual } from "node:crypto";

/**
 * Whether two secrets are the same. How long that takes tells nothing about either, not even its length: what is compared
 * are their digests, in constant time.
 */
export const sameSecret = (a: string | Uint8Array, b: string | Uint8Array): boolean =>
  timingSafeEqual(hash("sha256", a, "buffer"), hash("sha256", b, "buffer"));
