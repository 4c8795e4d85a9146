import Type from "typebox";
import { isoTime } from "#core/clock.ts";
import { appOf, type Caller } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import type { Certificates, Ownership } from "./certificates.ts";
import { PROXY_LIMITS } from "./limits.ts";
import type { StoredCertificate } from "./store.ts";

const text = Type.String();
const hostname = Type.String({ maxLength: 255 });
const pem = Type.String({ maxLength: PROXY_LIMITS.pem_chars });
const CertificateResponse = Type.Object({
  hostname: text,
  kind: Type.String({ description: "`custom` or `acme`." }),
  status: Type.String({ description: "`pending` (also while the ownership is not verified), `ready` or `failed`." }),
  configured: Type.Boolean({ description: "Whether the ownership of the name is verified and it has a certificate." }),
  problem: Type.Optional(text),
  ownership: Type.Object({
    proved: Type.Boolean({
      description: "Whether the ownership of the name is verified, so that it routes to the app.",
    }),
    type: Type.String({ description: "The kind of DNS record that proves it: `TXT`." }),
    name: Type.String({ description: "The record's name." }),
    value: Type.String({ description: "Its value." }),
  }),
  created_at: text,
  updated_at: text,
  expires_at: Type.Optional(text),
});

const PAGE = 25;

interface RouteParts {
  certificates: Certificates;
  /** Whether the caller's host names need no ownership proof. */
  isTrusted(caller: Caller): boolean;
}

export function certificateRoutes(parts: RouteParts): Row[] {
  return [...readRoutes(parts), ...addRoutes(parts), ...changeRoutes(parts)];
}

function readRoutes({ certificates }: RouteParts): Row[] {
  const shown = (one: StoredCertificate) => answer(one, certificates.ownership(one));
  return [
    route("GET /v1/apps/:app_name/certificates", {
      summary: "An app's host names and their certificates",
      part: "apps",
      access: "read app",
      query: Type.Object({
        filter: Type.Optional(Type.String({ description: "Only names that contain this text." })),
      }),
      pages: inPages("certificates", ["text"], { size: PAGE }),
      response: {
        status: 200,
        schema: Type.Object({
          certificates: Type.Array(CertificateResponse),
          total_count: Type.Integer(),
        }),
      },
      async handle({ query, page, ...call }) {
        const all = (await certificates.list(appOf(call).id)).filter((one) =>
          one.hostname.includes(query.filter ?? ""),
        );
        return { certificates: page.of(all, ({ hostname: name }) => [name]).map(shown), total_count: all.length };
      },
    }),
    route("GET /v1/apps/:app_name/certificates/:hostname", {
      summary: "One certificate",
      part: "apps",
      access: "read app",
      response: { status: 200, schema: CertificateResponse },
      handle: async ({ params, ...call }) => shown(await certificates.get(appOf(call).id, params.hostname)),
    }),
  ];
}

function addRoutes({ certificates, isTrusted }: RouteParts): Row[] {
  const shown = (one: StoredCertificate) => answer(one, certificates.ownership(one));
  return [
    route("POST /v1/apps/:app_name/certificates/custom", {
      summary: "Upload your own certificate; the name routes to the app once its ownership is verified",
      part: "apps",
      access: "write app",
      body: Type.Object({ hostname, fullchain: pem, private_key: pem }),
      response: { status: 201, schema: CertificateResponse },
      errors: ["invalid_name", "name_taken", "limit_reached"],
      async handle({ body, caller, ...call }) {
        return shown(await certificates.addCustom(appOf(call).id, body, { trusted: isTrusted(caller) }));
      },
    }),
    route("POST /v1/apps/:app_name/certificates/acme", {
      summary: "Get a certificate from the authority, and keep it renewed",
      part: "apps",
      access: "write app",
      body: Type.Object({ hostname }),
      response: { status: 201, schema: CertificateResponse },
      errors: ["invalid_name", "name_taken", "limit_reached", "no_certificate_authority"],
      async handle({ body: { hostname: name }, caller, ...call }) {
        return shown(await certificates.addAcme(appOf(call).id, name, { trusted: isTrusted(caller) }));
      },
    }),
  ];
}

function changeRoutes({ certificates }: RouteParts): Row[] {
  return [
    route("POST /v1/apps/:app_name/certificates/:hostname/check", {
      summary: "Check the ownership record of a host name, and retry its certificate now",
      part: "apps",
      access: "write app",
      response: { status: 200, schema: CertificateResponse },
      async handle({ params, ...call }) {
        const { certificate, ownership } = await certificates.check(appOf(call).id, params.hostname);
        return answer(certificate, ownership);
      },
    }),
    route("DELETE /v1/apps/:app_name/certificates/:hostname", {
      summary: "Remove a host name and its certificate",
      part: "apps",
      access: "write app",
      response: { status: 204 },
      handle: async ({ params, ...call }) => await certificates.remove(appOf(call).id, params.hostname),
    }),
    ...(["acme", "custom"] as const).map((kind) =>
      route(`DELETE /v1/apps/:app_name/certificates/:hostname/${kind}`, {
        summary: `Remove a host name whose certificate is ${kind}`,
        part: "apps",
        access: "write app",
        response: { status: 200, schema: Type.Object({ ok: Type.Boolean() }) },
        async handle({ params, ...call }) {
          await certificates.remove(appOf(call).id, params.hostname, kind);
          return { ok: true };
        },
      }),
    ),
  ];
}

function answer(one: StoredCertificate, { proved, name, value, problem: unproved }: Ownership) {
  const problem = [one.problem, unproved].filter((text) => text).join("; ");
  return {
    hostname: one.hostname,
    kind: one.kind,
    status: !proved && one.state === "ready" ? "pending" : one.state,
    configured: proved && one.chain !== null,
    ...(problem === "" ? {} : { problem }),
    ownership: { proved, type: "TXT", name, value },
    created_at: isoTime(one.created_at),
    updated_at: isoTime(one.updated_at),
    ...(one.expires_at === null ? {} : { expires_at: isoTime(one.expires_at) }),
  };
}
