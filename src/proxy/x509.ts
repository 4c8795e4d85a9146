import { generateKeyPairSync, type KeyObject, randomBytes, sign } from "node:crypto";
import { isIP } from "node:net";
import { addressBytes } from "#network/bytes.ts";
import { bits, integer, objectId, octets, pem, sequence, set, tagged, time, utf8, yes } from "./der.ts";
import type { Certificate } from "./table.ts";

const DAY_MS = 24 * 3600 * 1000;
const SELF_SIGNED_MS = 397 * DAY_MS;

const ECDSA_SHA256 = sequence(objectId("1.2.840.10045.4.3.2"));
const OID = {
  common_name: "2.5.4.3",
  basic_constraints: "2.5.29.19",
  key_usage: "2.5.29.15",
  extended_usage: "2.5.29.37",
  server_auth: "1.3.6.1.5.5.7.3.1",
  alternative_names: "2.5.29.17",
} as const;

export const newKey = (): { publicKey: KeyObject; privateKey: KeyObject } =>
  generateKeyPairSync("ec", { namedCurve: "P-256" });

/** Creates a self-signed certificate: enough to encrypt, not to be trusted. */
export function selfSigned(hostnames: readonly string[], now_ms: number, lifetime_ms = SELF_SIGNED_MS): Certificate {
  const { publicKey, privateKey } = newKey();
  const name = commonName(hostnames[0] ?? "localhost");
  const body = sequence(
    tagged(0xa0, integer(2)),
    integer(Buffer.concat([Buffer.from([0x40]), randomBytes(15)])),
    ECDSA_SHA256,
    name,
    sequence(time(now_ms - DAY_MS), time(now_ms + lifetime_ms)),
    name,
    publicKey.export({ type: "spki", format: "der" }),
    tagged(
      0xa3,
      sequence(
        extension(OID.basic_constraints, sequence(), true),
        // Digital signatures only.
        extension(OID.key_usage, tagged(0x03, Buffer.from([7, 0x80])), true),
        extension(OID.extended_usage, sequence(objectId(OID.server_auth)), false),
        extension(OID.alternative_names, alternativeNames(hostnames), false),
      ),
    ),
  );
  const der = sequence(body, ECDSA_SHA256, bits(sign("sha256", body, privateKey)));
  return { hostnames: [...hostnames], chain: pem("CERTIFICATE", der), key: keyPem(privateKey) };
}

export const keyPem = (key: KeyObject): string => String(key.export({ type: "pkcs8", format: "pem" }));

const commonName = (name: string): Buffer =>
  sequence(set(sequence(objectId(OID.common_name), utf8(name.slice(0, 64)))));

const extension = (id: string, value: Uint8Array, critical: boolean): Buffer =>
  critical ? sequence(objectId(id), yes, octets(value)) : sequence(objectId(id), octets(value));

const alternativeNames = (names: readonly string[]): Buffer =>
  sequence(...names.map((name) => (isIP(name) ? tagged(0x87, addressBytes(name)) : tagged(0x82, Buffer.from(name)))));
