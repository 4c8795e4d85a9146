import Type from "typebox";
import { isoTime } from "#core/clock.ts";
import { appOf } from "#http/access.ts";
import { type Row, route } from "#http/route.ts";
import type { Certificates } from "./certificates.ts";
import { PROXY_LIMITS } from "./limits.ts";
import type { StoredCertificate } from "./store.ts";

const text = Type.String();
const hostname = Type.String({ maxLength: 255 });
const pem = Type.String({ maxLength: PROXY_LIMITS.pem_chars });
const CertificateAnswer = Type.Object({
  hostname: text,
  kind: Type.String({ description: "`custom` or `acme`." }),
  status: Type.String({ description: "`pending`, `ready` or `failed`." }),
  configured: Type.Boolean({ description: "Whether there is a certificate in force." }),
  problem: Type.Optional(text),
  created_at: text,
  updated_at: text,
  expires_at: Type.Optional(text),
});

const PAGE = 25;
const PAGE_MAX = 500;

export function certificateRoutes(certificates: Certificates): Row[] {
  return [...readRoutes(certificates), ...changeRoutes(certificates)];
}

function readRoutes(certificates: Certificates): Row[] {
  return [
    route("GET /v1/apps/:app_name/certificates", {
      summary: "An app's host names and their certificates",
      part: "apps",
      access: "read app",
      query: Type.Object({
        filter: Type.Optional(Type.String({ description: "Only names that hold this text." })),
        cursor: Type.Optional(text),
        limit: Type.Optional(Type.Integer({ minimum: 1, maximum: PAGE_MAX })),
      }),
      answer: {
        status: 200,
        schema: Type.Object({
          certificates: Type.Array(CertificateAnswer),
          next_cursor: Type.Optional(text),
          total_count: Type.Integer(),
        }),
      },
      async handle({ query, ...call }) {
        const all = (await certificates.list(appOf(call).id)).filter((one) =>
          one.hostname.includes(query.filter ?? ""),
        );
        const rest = all.filter((one) => one.hostname > (query.cursor ?? ""));
        const page = rest.slice(0, query.limit ?? PAGE);
        const last = page.at(-1)?.hostname;
        return {
          certificates: page.map(answer),
          ...(rest.length > page.length && last !== undefined ? { next_cursor: last } : {}),
          total_count: all.length,
        };
      },
    }),
    route("GET /v1/apps/:app_name/certificates/:hostname", {
      summary: "One certificate",
      part: "apps",
      access: "read app",
      answer: { status: 200, schema: CertificateAnswer },
      handle: async ({ params, ...call }) => answer(await certificates.get(appOf(call).id, params.hostname)),
    }),
  ];
}

function changeRoutes(certificates: Certificates): Row[] {
  return [
    route("POST /v1/apps/:app_name/certificates/custom", {
      summary: "Bring a certificate of your own; the name then leads to the app",
      part: "apps",
      access: "write app",
      body: Type.Object({ hostname, fullchain: pem, private_key: pem }),
      answer: { status: 201, schema: CertificateAnswer },
      errors: ["invalid_name", "name_taken", "limit_reached"],
      handle: async ({ body, ...call }) => answer(await certificates.addCustom(appOf(call).id, body)),
    }),
    route("POST /v1/apps/:app_name/certificates/acme", {
      summary: "Get a certificate from the authority, and keep it renewed",
      part: "apps",
      access: "write app",
      body: Type.Object({ hostname }),
      answer: { status: 201, schema: CertificateAnswer },
      errors: ["invalid_name", "name_taken", "limit_reached", "no_certificate_authority"],
      handle: async ({ body, ...call }) => answer(await certificates.addAcme(appOf(call).id, body.hostname)),
    }),
    route("POST /v1/apps/:app_name/certificates/:hostname/check", {
      summary: "Try again now to get a certificate",
      part: "apps",
      access: "write app",
      answer: { status: 200, schema: CertificateAnswer },
      handle: async ({ params, ...call }) => answer(await certificates.check(appOf(call).id, params.hostname)),
    }),
    route("DELETE /v1/apps/:app_name/certificates/:hostname", {
      summary: "Remove a host name and its certificate",
      part: "apps",
      access: "write app",
      answer: { status: 204 },
      handle: async ({ params, ...call }) => await certificates.remove(appOf(call).id, params.hostname),
    }),
    ...(["acme", "custom"] as const).map((kind) =>
      route(`DELETE /v1/apps/:app_name/certificates/:hostname/${kind}`, {
        summary: `Remove a host name whose certificate is ${kind}`,
        part: "apps",
        access: "write app",
        answer: { status: 200, schema: Type.Object({ ok: Type.Boolean() }) },
        async handle({ params, ...call }) {
          await certificates.remove(appOf(call).id, params.hostname, kind);
          return { ok: true };
        },
      }),
    ),
  ];
}

function answer(one: StoredCertificate) {
  return {
    hostname: one.hostname,
    kind: one.kind,
    status: one.state,
    configured: one.chain !== null,
    ...(one.problem === null ? {} : { problem: one.problem }),
    created_at: isoTime(one.created_at),
    updated_at: isoTime(one.updated_at),
    ...(one.expires_at === null ? {} : { expires_at: isoTime(one.expires_at) }),
  };
}
