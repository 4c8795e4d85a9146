/** Authenticates and authorizes a request at its start, and again while a long one lasts. */
import type { FastifyRequest } from "fastify";
import { fail } from "#core/errors.ts";
import type { Admitted, Caller, Target } from "./access.ts";
import type { Row } from "./route.ts";
import type { ServerParts } from "./server-parts.ts";
import { webSocketToken } from "./websocket.ts";

const ANONYMOUS: Caller = { token_id: "", name: "nobody" };

/** The validated input of a request. */
export interface Input {
  params: Record<string, string>;
  query: Record<string, unknown>;
  body: unknown;
}

export async function callerOf(
  row: Row,
  { guard, machine_authenticator }: ServerParts,
  request: FastifyRequest,
): Promise<Caller> {
  if (row.access === "open") return ANONYMOUS;
  if (row.access !== "machine") {
    const token = request.headers.authorization ?? (row.websocket && webSocketToken(request.raw));
    return await guard.identify(token, row.scheme ?? "any", request.raw);
  }
  return (
    (await machine_authenticator?.identify(request.raw)) ?? fail("unauthorized", "this route is only for machines")
  );
}

export async function admittedTo(
  row: Row,
  { guard }: Pick<ServerParts, "guard">,
  caller: Caller,
  input: Input,
): Promise<Admitted> {
  const { access } = row;
  if (row.credential && caller.is_borrowed)
    fail(
      "forbidden",
      "the credential of a connector cannot make credentials, webhooks or connectors, or change who may use them",
    );
  return access === "open" || access === "machine" ? {} : await guard.admit(caller, access, targetOf(input));
}

function targetOf({ params, query, body }: Input): Target {
  const text = (value: unknown): string | undefined => (typeof value === "string" ? value : undefined);
  const inBody = body !== null && typeof body === "object" ? (body as Record<string, unknown>)["org_slug"] : undefined;
  return {
    org_slug: params["org_slug"] ?? text(query["org_slug"]) ?? text(inBody),
    app_name: params["app_name"],
    machine_id: params["machine_id"],
  };
}
