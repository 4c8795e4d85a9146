import { fail } from "./errors.ts";

/**
 * User-chosen names that appear in host names, paths and token subjects (`org:app:machine`): only characters that
 * cannot split or imitate these.
 */
const SLUG = /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/;

const SLUG_RULE = "1 to 63 lower-case letters, digits and dashes, not beginning or ending with a dash";

export function checkSlug(name: string, path: string): void {
  if (SLUG.test(name)) return;
  fail("invalid_name", `Validation failed: Name under 63 chars using numbers, lowercase letters and dashes (${path})`, {
    details: [{ path, problem: "is not a valid name", allowed: SLUG_RULE }],
  });
}

/** Converts text to a slug; empty when nothing of it is valid. */
export function toSlug(text: string): string {
  return text
    .normalize("NFKD")
    .toLowerCase()
    .replaceAll(/[^a-z0-9]+/g, "-")
    .slice(0, 63)
    .replaceAll(/^-+|-+$/g, "");
}
