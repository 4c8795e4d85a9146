/** Whether the token may do something, asked of the platform, which decides. */
import { useCell } from "./cell.ts";
import { useAnswer } from "./parts/basics.ts";
import { call, isReadOnly, session } from "./session.ts";

export const READ_ONLY = "Your token can only read";

/** Why the token may not change this app; undefined when it may. Until the platform has answered, the token's kind decides. */
export function useRefusal(app_name: string): string | undefined {
  const now = useCell(session);
  const { value } = useAnswer(
    (signal) =>
      call("POST /v1/tokens/authorize", {
        body: { action: "write", app_name, ...(now ? { org_slug: now.org_slug } : {}) },
        signal,
      }),
    [app_name, now?.org_slug, now?.token_id],
  );
  if (isReadOnly(now)) return READ_ONLY;
  return value && !value.allowed ? `Your token does not allow this: ${value.reason ?? "no right to write"}` : undefined;
}
