/** Limits of the listener for Fly's clients. */
export const FLY_LIMITS = {
  /** Size of a GraphQL request, variables included. Past it: 413. */
  graphql_bytes: 256 * 1024,
  /** Tokens of a GraphQL document. Past it: an error of the query. */
  graphql_tokens: 4000,
  /** Nesting depth of a GraphQL query's fields. Past it: an error of the query. */
  graphql_depth: 12,
  /** Fields of a GraphQL query, fragments expanded. Past it: an error of the query. */
  graphql_fields: 1000,
  /** Routes of the platform that one GraphQL query calls. Past it: an error at the field. */
  graphql_calls: 500,
  /** Secret keys of an app. Past it: 422 `limit_reached`. */
  secret_keys_per_app: 100,
} as const;
