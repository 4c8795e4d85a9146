import { RUNC_LIMITS } from "./limits.ts";

/** Extends the start timeout while an image is pulled; a stalled pull is given up by the puller. */
export async function whileComing<Got>(extend: () => void, coming: Promise<Got>): Promise<Got> {
  const beat = setInterval(extend, RUNC_LIMITS.image_beat_ms);
  try {
    return await coming;
  } finally {
    clearInterval(beat);
    extend();
  }
}
