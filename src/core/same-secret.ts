import { hash, timingSafeEqual } from "node:crypto";

/** Compares two secrets in constant time. Their digests are compared, so that not even their lengths leak. */
export const sameSecret = (a: string | Uint8Array, b: string | Uint8Array): boolean =>
  timingSafeEqual(hash("sha256", a, "buffer"), hash("sha256", b, "buffer"));
