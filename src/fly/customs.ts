import type { ErrorBody } from "#core/errors.ts";
import type { Customs } from "#http/server-parts.ts";

/** Texts that Fly's clients compare word for word. */
const TEXTS: readonly [ours: RegExp, theirs: string][] = [[/^Could not find App .*/, "app not found"]];

/** Codes that Fly's clients branch on; every other one is `unknown` to them. */
const CODES: ReadonlySet<string> = new Set(["insufficient_capacity", "volume_placement_capacity", "name_taken"]);

/** They read `message` first, then `error`; the text includes the hint, because they show nothing else. */
function errorOf({ error, status, hint, details, request_id }: ErrorBody): object {
  const known = TEXTS.find(([ours]) => ours.test(error));
  const text = known ? known[1] : hint === undefined ? error : `${error} (${hint})`;
  return {
    error: text,
    message: text,
    status: CODES.has(status) ? status : "unknown",
    code: status,
    request_id,
    ...(details === undefined ? {} : { details: { problems: details } }),
  };
}

export const flyCustoms = (region: string): Customs => ({
  headers: (request_id) => ({ "fly-request-id": `${request_id}-${region}` }),
  error: (body, http, url) => ({
    http,
    body: url.startsWith("/graphql") ? { errors: [{ message: body.error }] } : errorOf(body),
  }),
});
