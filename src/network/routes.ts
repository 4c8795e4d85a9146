import Type from "typebox";
import { isoTime } from "#core/clock.ts";
import { appOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import type { Addresses } from "./addresses.ts";
import { ADDRESS_TYPES, type IpAssignment, isEgress } from "./types.ts";

const text = Type.String();
const AddressResponse = Type.Object({
  ip: text,
  type: text,
  region: text,
  shared: Type.Boolean({ description: "Shared with other apps; requests are routed by host name." }),
  egress: Type.Boolean({ description: "For what machines send, not for what reaches them." }),
  service_name: text,
  network: text,
  created_at: text,
});

const CreateAddress = Type.Object({
  type: Type.Unsafe<(typeof ADDRESS_TYPES)[number]>(
    Type.Union(
      ADDRESS_TYPES.map((type) => Type.Literal(type)),
      { description: "`shared_v4` is the one all apps share; `v4` and `v6` are the app's own." },
    ),
  ),
  region: Type.Optional(text),
  org_slug: Type.Optional(text),
  network: Type.Optional(text),
  service_name: Type.Optional(text),
});

export function addressRoutes(addresses: Addresses): Row[] {
  return [
    route("GET /v1/apps/:app_name/ip_assignments", {
      summary: "An app's addresses",
      part: "apps",
      access: "read app",
      pages: inPages("ips", ["number", "text"]),
      response: { status: 200, schema: Type.Object({ ips: Type.Array(AddressResponse) }) },
      async handle({ page, ...call }) {
        const all = await addresses.list(appOf(call).id);
        return { ips: page.of(all, ({ created_at, ip }) => [created_at, ip]).map(answer) };
      },
    }),
    route("POST /v1/apps/:app_name/ip_assignments", {
      summary: "Allocate an address to an app, which opens its service ports",
      part: "apps",
      access: "write app",
      body: CreateAddress,
      response: { status: 200, schema: AddressResponse },
      errors: ["limit_reached"],
      handle: async ({ body, ...call }) => answer(await addresses.allocate(appOf(call).id, body)),
    }),
    route("DELETE /v1/apps/:app_name/ip_assignments/:ip", {
      summary: "Release an address; without any, the app's ports are closed",
      part: "apps",
      access: "write app",
      response: { status: 204 },
      handle: async ({ params, ...call }) => await addresses.release(appOf(call).id, params.ip),
    }),
  ];
}

function answer({ ip, type, region, shared, service_name, network, created_at }: IpAssignment) {
  return {
    ip,
    type,
    region,
    shared,
    egress: isEgress({ type }),
    service_name: service_name ?? "",
    network: network ?? "",
    created_at: isoTime(created_at),
  };
}
