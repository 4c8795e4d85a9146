import { buildSchema, execute, GraphQLError, parse, validate } from "graphql";
import { ApiError } from "#core/errors.ts";
import type { Log } from "#core/log.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import type { PlatformRows } from "../calls.ts";
import { FLY_LIMITS } from "../limits.ts";
import { tooMuch } from "./bounds.ts";
import { Query } from "./context.ts";
import { mutations } from "./mutations.ts";
import { queries } from "./queries.ts";
import { SCHEMA } from "./schema.ts";

interface Parts {
  rows: PlatformRows;
  log: Log;
  domain: string;
}

const Body = Type.Object({
  query: Type.String(),
  variables: Type.Optional(Type.Record(Type.String(), Type.Unknown())),
  operationName: Type.Optional(Type.String()),
});
const Answer = Type.Object({
  data: Type.Optional(Type.Unknown()),
  errors: Type.Optional(Type.Array(Type.Unknown())),
});

export function graphqlRoute(parts: Parts): Row {
  const schema = buildSchema(SCHEMA);
  return route("POST /graphql", {
    summary: "Fly's GraphQL API, for resources that the platform has",
    part: "platform",
    access: "any",
    // Some mutations create tokens: no response is stored.
    credential: true,
    body: Body,
    body_limit: { name: "graphql_bytes", bytes: FLY_LIMITS.graphql_bytes },
    response: { status: 200, schema: Answer },
    async handle(call) {
      const { query, variables, operationName } = call.body;
      const document = parsed(query);
      if (document instanceof GraphQLError) return { errors: [document.toJSON()] };
      const invalid = validate(schema, document);
      if (invalid.length > 0) return { errors: invalid.map((error) => error.toJSON()) };
      const refused = tooMuch(document);
      if (refused !== undefined) return { errors: [{ message: refused, extensions: { code: "TOO_COMPLEX" } }] };
      const contextValue = new Query(parts.rows, call, parts.domain);
      const rootValue = { ...queries, ...mutations };
      const { data, errors } = await execute({
        schema,
        document,
        rootValue,
        contextValue,
        ...(variables ? { variableValues: variables } : {}),
        ...(operationName ? { operationName } : {}),
      });
      const shown = errors?.map((error) => shownError(error, parts.log, call.request_id));
      return { ...(data === undefined ? {} : { data }), ...(shown ? { errors: shown } : {}) };
    },
  });
}

function parsed(text: string) {
  try {
    return parse(text, { maxTokens: FLY_LIMITS.graphql_tokens });
  } catch (thrown) {
    if (thrown instanceof GraphQLError) return thrown;
    throw thrown;
  }
}

/** Codes that their clients branch on. */
const CODES: Record<string, string> = {
  not_found: "NOT_FOUND",
  unauthorized: "UNAUTHORIZED",
  forbidden: "FORBIDDEN",
  invalid_request: "UNPROCESSABLE",
};

/** API errors are shown; anything else is a bug, whose message stays internal. */
function shownError(error: GraphQLError, log: Log, request_id: string): object {
  const cause = error.originalError;
  const { path } = error;
  if (cause === undefined) return error.toJSON();
  if (cause instanceof ApiError) {
    const { hint } = cause.extras;
    const message = hint === undefined ? cause.message : `${cause.message} (${hint})`;
    return { message, path, extensions: { code: CODES[cause.code] ?? cause.code.toUpperCase() } };
  }
  log.error({ error: cause, request_id }, "a bug: an error that no one expected");
  return { message: `internal error; see request ${request_id} in the log`, path };
}
