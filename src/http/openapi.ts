import type { TSchema } from "typebox";
import { CATALOGUE, type ErrorCode } from "#core/error-catalogue.ts";
import { VERSION } from "#core/version.ts";
import type { JsonSchema } from "./json-schema.ts";
import { PROMETHEUS_ERROR_SCHEMA } from "./prometheus.ts";
import { REGISTRY_ERROR_SCHEMA } from "./registry-error.ts";
import { PARTS, type Part, type Row } from "./route.ts";
import { SPRITES_ERROR_SCHEMA } from "./sprites-error.ts";

/** The connector API has a version of its own, given by the specification. */
const CONNECTOR_API = { version: "0.1.12", runtime_environment: "v0.0.1-rc48" } as const;

/** Any route may answer these. */
const COMMON: readonly ErrorCode[] = [
  "invalid_request",
  "malformed_json",
  "malformed_http",
  "internal",
  "storage_full",
  "storage_failed",
  "overloaded",
  "shutting_down",
];
const WITH_TOKEN: readonly ErrorCode[] = ["unauthorized", "forbidden", "not_found", "rate_limited"];
const WITH_BODY: readonly ErrorCode[] = ["payload_too_large", "unsupported_media_type", "request_timeout"];
const WITH_KEY: readonly ErrorCode[] = ["idempotency_in_progress", "idempotency_mismatch"];

/** Every code a row may answer. */
export function errorsOf(row: Row): ErrorCode[] {
  const codes = [
    ...COMMON,
    ...(row.access === "open" ? [] : WITH_TOKEN),
    ...(row.body || row.upload ? WITH_BODY : []),
    ...(row.method === "POST" ? WITH_KEY : []),
    ...(row.errors ?? []),
  ];
  return [...new Set(codes)];
}

const ERROR_SCHEMAS = {
  own: "Error",
  prometheus: "PrometheusError",
  registry: "RegistryError",
  sprites: "SpritesError",
} as const;

/** The OpenAPI 3.1 document of the rows. */
export function openapi(rows: readonly Row[], base_url: string): object {
  const paths: Record<string, Record<string, object>> = {};
  for (const row of rows) {
    const path = shownPath(row).replaceAll(/:(\w+)/g, "{$1}");
    paths[path] = { ...paths[path], [row.method.toLowerCase()]: operation(row) };
  }
  return {
    openapi: "3.1.0",
    info: {
      title: "Hangar",
      version: VERSION,
      description: "A self-hosted machines platform.",
      license: { name: "Apache-2.0", identifier: "Apache-2.0" },
    },
    servers: [{ url: base_url }],
    tags: (Object.entries(PARTS) as [Part, string][]).map(([name, description]) => ({
      name,
      description,
      ...partExtras(name),
    })),
    security: [{ bearer: [] }],
    paths,
    components: {
      securitySchemes: {
        bearer: {
          type: "http",
          scheme: "bearer",
          description: "A full-access token, or one created for an organization.",
        },
        svcv1: {
          type: "apiKey",
          in: "header",
          name: "authorization",
          description: "`SvcV1 <token>`: metrics queries with a created token.",
        },
      },
      schemas: {
        Error: ERROR_SCHEMA,
        PrometheusError: PROMETHEUS_ERROR_SCHEMA,
        RegistryError: REGISTRY_ERROR_SCHEMA,
        SpritesError: SPRITES_ERROR_SCHEMA,
      },
    },
  };
}

function partExtras(part: Part): object {
  if (part !== "connectors") return {};
  return { "x-api-version": CONNECTOR_API.version, "x-runtime-environment-version": CONNECTOR_API.runtime_environment };
}

function operation(row: Row): object {
  const { summary, description, part } = row;
  return {
    operationId: `${row.method.toLowerCase()}${row.path.replaceAll(/[^a-zA-Z0-9]+/g, "_")}`.replace(/_$/, ""),
    summary,
    ...(description ? { description } : {}),
    tags: [part],
    "x-access": row.access,
    ...(row.access === "open" ? { security: [] } : {}),
    ...(row.scheme === "metrics" ? { security: [{ bearer: [] }, { svcv1: [] }] } : {}),
    parameters: [...pathParameters(row), ...queryParameters(row), ...headerParameters(row)],
    ...(row.body
      ? { requestBody: { required: isRequired(row.body), content: { "application/json": { schema: row.body } } } }
      : {}),
    ...(row.upload ? { requestBody: { required: true, content: uploadContent(row.upload) } } : {}),
    responses: { [row.response.status]: success(row), ...failures(row) },
  };
}

const BINARY = { schema: { type: "string", format: "binary" } } as const;
const OCTETS = "application/octet-stream";

/** Generators of clients know bytes without a type of their own, and omit routes that take only others. */
const uploadContent = (type: string): object => ({ [type]: BINARY, [OCTETS]: BINARY });

const isRequired = (schema: TSchema): boolean => ((schema as JsonSchema).required?.length ?? 0) > 0;

const parameter = (where: string, name: string, schema: JsonSchema, required: boolean): object => {
  const { description, ...rest } = schema;
  return { in: where, name, required, schema: rest, ...(description ? { description } : {}) };
};

/** The wildcard `*` of a path has a name in documents. */
const shownPath = ({ path }: Row): string => path.replace("*", ":rest");

function pathParameters(row: Row): object[] {
  return [...shownPath(row).matchAll(/:(\w+)/g)].map(([, name]) =>
    parameter("path", name ?? "", { type: "string" }, true),
  );
}

function queryParameters(row: Row): object[] {
  const { properties = {}, required = [] } = (row.query ?? {}) as JsonSchema;
  return Object.entries(properties).map(([name, schema]) => parameter("query", name, schema, required.includes(name)));
}

function headerParameters(row: Row): object[] {
  if (row.method !== "POST" || row.access === "open" || row.access === "machine" || row.upload) return [];
  const description = "The same key again within 24 hours gets the first answer instead of doing it twice.";
  return [parameter("header", "idempotency-key", { type: "string", description }, false)];
}

const REQUEST_ID = {
  "svc-request-id": { description: "Identifies this request in the log.", schema: { type: "string" } },
};

function success(row: Row): object {
  const { response: answer } = row;
  const headers = REQUEST_ID;
  // Clients that do not accept JSON get a stream of the same items.
  const streamed = row.lines ? "application/x-ndjson" : "text/event-stream";
  const stream = row.stream && { [streamed]: { schema: textSchema(streamed) } };
  if (answer.schema)
    return { description: "Done.", headers, content: { "application/json": { schema: answer.schema }, ...stream } };
  if (answer.type === "*/*")
    return { description: "Done.", headers, content: { "*/*": { schema: {} }, [OCTETS]: BINARY } };
  if (answer.type)
    return { description: "Done.", headers, content: { [answer.type]: { schema: textSchema(answer.type) } } };
  return { description: "Done; no body.", headers };
}

const textSchema = (type: string): object => (type === "application/json" ? { type: "object" } : { type: "string" });

function failures(row: Row): Record<string, object> {
  const byStatus = Map.groupBy(errorsOf(row), (code) => CATALOGUE[code].http);
  return Object.fromEntries(
    [...byStatus].map(([status, codes]) => [
      status,
      {
        description: codes.map((code) => `\`${code}\`: ${CATALOGUE[code].meaning}`).join("\n\n"),
        headers: REQUEST_ID,
        content:
          row.style === "git"
            ? { "text/plain": { schema: textSchema("text/plain") } }
            : { "application/json": { schema: { $ref: `#/components/schemas/${ERROR_SCHEMAS[row.style ?? "own"]}` } } },
      },
    ]),
  );
}

const ERROR_SCHEMA = {
  type: "object",
  required: ["error", "status", "retryable", "request_id"],
  properties: {
    error: { type: "string", description: "Message for people." },
    status: { type: "string", enum: Object.keys(CATALOGUE), description: "The stable code." },
    retryable: { type: "boolean", description: "Whether the same request may succeed later." },
    request_id: { type: "string" },
    hint: { type: "string", description: "What to do next." },
    details: {
      type: "array",
      description: "All problems, each with the field's path.",
      items: {
        type: "object",
        required: ["path", "problem"],
        properties: { path: { type: "string" }, problem: { type: "string" }, allowed: { type: "string" } },
      },
    },
  },
} as const;
