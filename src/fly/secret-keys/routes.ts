/** Secret keys of apps, as fly-go asks for them. */
import { fail } from "#core/errors.ts";
import { appOf } from "#http/access.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import type { SecretKeyService } from "./service.ts";
import type { SecretKey } from "./store.ts";

const Base64 = Type.String({ pattern: "^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$" });
/** Bytes as Go writes them; Go reads a list of numbers as well, and Fly's own document calls them one. */
const Bytes = Type.Union([Base64, Type.Array(Type.Integer({ minimum: 0, maximum: 255 }))], {
  description: "Base64, or a list of bytes.",
});
const Absent = Type.Union([Bytes, Type.Null()]);

function checkedName(name: string): string {
  const allowed = "letters, digits, - and _, at most 100";
  if (/^[A-Za-z0-9_-]{1,100}$/.test(name)) return name;
  const problem = "is not a name of a secret key";
  fail("invalid_request", `key_name ${problem}: ${allowed}`, {
    details: [{ path: "params.key_name", problem, allowed }],
  });
}

const Key = Type.Object({ name: Type.String(), type: Type.String(), public_key: Type.Optional(Base64) });
const KeySet = Type.Object({
  name: Type.String(),
  type: Type.String(),
  public_key: Type.Optional(Base64),
  version: Type.Integer({ description: "How often the key was set." }),
});
const Kind = Type.String({ description: "Such as `nacl_secretbox` or `hs256`." });

const bytesOf = (value: string | number[] | null | undefined): Buffer =>
  typeof value === "string" ? Buffer.from(value, "base64") : Buffer.from(value ?? []);

const keyResponse = ({ name, type, public_key }: SecretKey) => ({
  name,
  type,
  ...(public_key ? { public_key: Buffer.from(public_key).toString("base64") } : {}),
});

const PATH = "/v1/apps/:app_name/secretkeys" as const;
const KEY = `${PATH}/:key_name` as const;

export const secretKeyRoutes = (keys: SecretKeyService): Row[] => [...keptRoutes(keys), ...useRoutes(keys)];

function keptRoutes(keys: SecretKeyService): Row[] {
  return [
    route(`GET ${PATH}`, {
      summary: "Secret keys of an app: names, types and public keys",
      part: "apps",
      access: "read app",
      response: { status: 200, schema: Type.Object({ secret_keys: Type.Array(Key) }) },
      handle: async (call) => ({ secret_keys: (await keys.list(appOf(call).id)).map(keyResponse) }),
    }),
    route(`GET ${KEY}`, {
      summary: "One secret key, without the key itself",
      part: "apps",
      access: "read app",
      response: { status: 200, schema: Key },
      handle: async ({ params, ...call }) => keyResponse(await keys.get(appOf(call).id, params.key_name)),
    }),
    route(`POST ${KEY}`, {
      summary: "Set a secret key",
      part: "apps",
      access: "write app",
      credential: true,
      body: Type.Object({ type: Kind, value: Bytes }),
      response: { status: 201, schema: KeySet },
      errors: ["limit_reached"],
      async handle({ params, body, ...call }) {
        const name = checkedName(params.key_name);
        const made = await keys.set(appOf(call).id, name, body.type, bytesOf(body.value));
        return { ...keyResponse(made), version: made.version };
      },
    }),
    route(`POST ${KEY}/generate`, {
      summary: "Set a secret key to a random one",
      part: "apps",
      access: "write app",
      credential: true,
      body: Type.Object({ type: Kind, value: Type.Optional(Absent) }),
      response: { status: 201, schema: KeySet },
      errors: ["limit_reached"],
      async handle({ params, body, ...call }) {
        const made = await keys.generate(appOf(call).id, checkedName(params.key_name), body.type);
        return { ...keyResponse(made), version: made.version };
      },
    }),
    route(`DELETE ${KEY}`, {
      summary: "Remove a secret key",
      part: "apps",
      access: "write app",
      response: { status: 204 },
      handle: async ({ params, ...call }) => await keys.remove(appOf(call).id, params.key_name),
    }),
  ];
}

/** What they return depends on the key, so nothing is stored for an Idempotency-Key. */
const USE = { part: "apps", access: "write app", credential: true } as const;

function useRoutes(keys: SecretKeyService): Row[] {
  return [
    route(`POST ${KEY}/encrypt`, {
      ...USE,
      summary: "Encrypt with a secret key",
      body: Type.Object({ plaintext: Absent, associated_data: Type.Optional(Absent) }),
      response: { status: 200, schema: Type.Object({ ciphertext: Base64 }) },
      async handle({ params, body: { plaintext, associated_data }, ...call }) {
        const given = [bytesOf(plaintext), bytesOf(associated_data)] as const;
        return { ciphertext: (await keys.encrypt(appOf(call).id, params.key_name, ...given)).toString("base64") };
      },
    }),
    route(`POST ${KEY}/decrypt`, {
      ...USE,
      summary: "Decrypt with a secret key",
      body: Type.Object({ ciphertext: Bytes, associated_data: Type.Optional(Absent) }),
      response: { status: 200, schema: Type.Object({ plaintext: Base64 }) },
      async handle({ params, body: { ciphertext, associated_data }, ...call }) {
        const given = [bytesOf(ciphertext), bytesOf(associated_data)] as const;
        return { plaintext: (await keys.decrypt(appOf(call).id, params.key_name, ...given)).toString("base64") };
      },
    }),
    route(`POST ${KEY}/sign`, {
      ...USE,
      summary: "Sign with a secret key",
      body: Type.Object({ plaintext: Absent }),
      response: { status: 200, schema: Type.Object({ signature: Base64 }) },
      async handle({ params, body, ...call }) {
        const signature = await keys.sign(appOf(call).id, params.key_name, bytesOf(body.plaintext));
        return { signature: signature.toString("base64") };
      },
    }),
    route(`POST ${KEY}/verify`, {
      ...USE,
      summary: "Verify a signature of a secret key; 400 when it is another one",
      body: Type.Object({ plaintext: Absent, signature: Bytes }),
      response: { status: 204 },
      handle: async ({ params, body, ...call }) =>
        await keys.verify(appOf(call).id, params.key_name, bytesOf(body.plaintext), bytesOf(body.signature)),
    }),
  ];
}
