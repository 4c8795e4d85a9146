import { type ErrorExtras, fail } from "#core/errors.ts";

/** An image that must not, or cannot, be used. Says what is wrong with it and where. */
export function refuseImage(message: string, extras?: ErrorExtras): never {
  fail("image_refused", message, extras);
}

/** A fault of a layer, found where there is only the layer: whoever knows the image says which one it is. */
export class LayerFault extends Error {
  override readonly name = "LayerFault";
}
