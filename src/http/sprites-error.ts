import { CATALOGUE } from "#core/error-catalogue.ts";
import type { ErrorBody } from "#core/errors.ts";

/**
 * An error as clients of the Sprites API read it: `error` is the code and `message` the text. Errors of files have the
 * code of the system call in `code`, and then `error` is the text.
 */
export function spritesError({ error, status, hint, ...more }: ErrorBody): object {
  const message = hint === undefined ? error : `${error} (${hint})`;
  const is_file = typeof more["code"] === "string";
  return { ...more, error: is_file ? message : status, message, status };
}

export const SPRITES_ERROR_SCHEMA = {
  type: "object",
  required: ["error", "message"],
  properties: {
    error: { type: "string", enum: Object.keys(CATALOGUE).sort(), description: "Stable code; branch on this." },
    message: { type: "string", description: "What happened, and why." },
    limit: { type: "integer", description: "Of a rate or quota: what is allowed." },
    window_seconds: { type: "integer" },
    retry_after_seconds: { type: "integer" },
    current_count: { type: "integer" },
  },
} as const;
