/** Errors for images that are in use, or that are no longer stored. */
import { ApiError, fail } from "#core/errors.ts";
import { LIMITS } from "#core/limits.ts";
import type { ReleaseImage } from "#machines/runtime/image-source.ts";
import type { NameRecord } from "./names.ts";
import { shortName } from "./store.ts";

export function refuseInUse(record: Pick<NameRecord, "name">, machines: readonly string[]): void {
  if (machines.length === 0) return;
  const some = machines.slice(0, 3).join(", ");
  const who = machines.length === 1 ? `machine ${some}` : `${machines.length} machines, ${some} among them`;
  fail("image_in_use", `${shortName(record)} is used by ${who}`, {
    facts: { machines: [...machines] },
    hint: "destroy them, or update them to another image",
  });
}

/** A digest that no registry has belongs to an image that was imported once. */
export function hinted(thrown: unknown): unknown {
  if (!(thrown instanceof ApiError)) return thrown;
  const kept = `a machine or one of the newest ${LIMITS.release_images_kept} releases of an app`;
  const hint = `an imported image is kept by its digest while ${kept} needs it; import it again`;
  const { hint: before, ...extras } = thrown.extras;
  return new ApiError(thrown.code, thrown.message, { ...extras, hint: before ? `${before}; ${hint}` : hint });
}

export function refuseReleased(record: Pick<NameRecord, "name">, needed: readonly ReleaseImage[]): never {
  const some = needed.slice(0, 3).map(({ app_name, version }) => `release ${version} of ${app_name}`);
  const more = needed.length > 3 ? ` and ${needed.length - 3} more` : "";
  fail("image_in_use", `${shortName(record)} is needed for a rollback to ${some.join(", ")}${more}`, {
    facts: { releases: needed.map(({ app_name, version }) => ({ app_name, version })) },
    hint: `the images of an app's newest ${LIMITS.release_images_kept} releases are kept (limit release_images_kept)`,
  });
}
