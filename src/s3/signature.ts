/** AWS signature version 4 for object stores, with a body that is not read first (UNSIGNED-PAYLOAD). */
import { createHash, createHmac } from "node:crypto";
import { isoTime } from "#core/clock.ts";

export interface Signing {
  method: string;
  /** As sent: percent-encoded. */
  path: string;
  /** As sent, without the question mark. */
  query: string;
  host: string;
  headers: Record<string, string>;
  access_key_id: string;
  secret: string;
  region: string;
  now_ms: number;
}

const UNSIGNED = "UNSIGNED-PAYLOAD";

/** The headers to add. */
export function signedHeaders(signing: Signing, payload = UNSIGNED): Record<string, string> {
  const { access_key_id, secret, region, host } = signing;
  const time = isoTime(signing.now_ms).replaceAll(/[-:]|\.\d+/g, "");
  const day = time.slice(0, 8);
  const own = { "x-amz-content-sha256": payload, "x-amz-date": time };
  const covered = Object.entries({ ...pick(signing.headers), ...own, host })
    .map(([name, value]): [string, string] => [name, value.trim().replaceAll(/ +/g, " ")])
    .sort(([a], [b]) => (a < b ? -1 : 1));
  const names = covered.map(([name]) => name).join(";");
  const canonical = [
    signing.method,
    signing.path,
    canonicalQuery(signing.query),
    ...covered.map(([name, value]) => `${name}:${value}`),
    "",
    names,
    payload,
  ].join("\n");
  const scope = `${day}/${region}/s3/aws4_request`;
  const text = ["AWS4-HMAC-SHA256", time, scope, sha256(canonical)].join("\n");
  const key = [day, region, "s3", "aws4_request"].reduce<Buffer | string>(hmac, `AWS4${secret}`);
  const signature = createHmac("sha256", key).update(text).digest("hex");
  const authorization = `AWS4-HMAC-SHA256 Credential=${access_key_id}/${scope}, SignedHeaders=${names}, Signature=${signature}`;
  return { ...own, authorization };
}

const hmac = (key: Buffer | string, text: string): Buffer => createHmac("sha256", key).update(text).digest();
const sha256 = (text: string): string => createHash("sha256").update(text).digest("hex");

/** Headers that are signed: those of the store, and the range. */
function pick(headers: Record<string, string>): Record<string, string> {
  return Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("x-amz-") || name === "range"));
}

function canonicalQuery(query: string): string {
  if (query === "") return "";
  const pairs = query.split("&").map((pair) => {
    const [name = "", value = ""] = pair.split("=", 2).map((text) => encode(decodeURIComponent(text)));
    return `${name}=${value}`;
  });
  return pairs.sort().join("&");
}

/** Percent-encoded as signatures need it: every byte but letters, digits and `-._~`. */
export const encode = (text: string): string =>
  encodeURIComponent(text).replaceAll(/[!'()*]/g, (char) => `%${char.charCodeAt(0).toString(16).toUpperCase()}`);

/** A path with each of its segments encoded. */
export const encodedPath = (path: string): string => path.split("/").map(encode).join("/");
