import { RUNC_LIMITS } from "./limits.ts";

/** An image may take as long as it comes: one that does not come any more is given up by whoever pulls it. */
export async function whileComing<Got>(extend: () => void, coming: Promise<Got>): Promise<Got> {
  const beat = setInterval(extend, RUNC_LIMITS.image_beat_ms);
  try {
    return await coming;
  } finally {
    clearInterval(beat);
    extend();
  }
}
