import { type ErrorExtras, fail } from "#core/errors.ts";

/** Refuses an image, saying what is wrong and where. */
export function refuseImage(message: string, extras?: ErrorExtras): never {
  fail("image_refused", message, extras);
}

/** An invalid layer; callers that know the image add its name. */
export class LayerFault extends Error {
  override readonly name = "LayerFault";
}
