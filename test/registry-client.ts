/** A client of the platform's own registry: requests as the OCI distribution specification says. */
import assert from "node:assert/strict";
import { createHash, randomBytes } from "node:crypto";
import type { TestContext } from "node:test";
import { type TestPlatform, testPlatform } from "./platform.ts";

export const digestOf = (bytes: Uint8Array | string): string =>
  `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
export const MANIFEST = "application/vnd.oci.image.manifest.v1+json";

interface Asked {
  body?: Uint8Array | string;
  headers?: Record<string, string>;
  token?: string | null;
}

export class RegistryClient {
  readonly platform: TestPlatform;

  constructor(platform: TestPlatform) {
    this.platform = platform;
  }

  async ask(target: string, { body, headers, token = this.platform.token }: Asked = {}): Promise<Response> {
    const [method = "GET", path = "/"] = target.split(" ");
    const login = Buffer.from(`anyone:${token}`).toString("base64");
    return await fetch(new URL(path, this.platform.base_url), {
      method,
      headers: { ...(token === null ? {} : { authorization: `Basic ${login}` }), ...headers },
      ...(body === undefined ? {} : { body }),
    });
  }

  async expect(status: number, target: string, asked: Asked = {}): Promise<Response> {
    const response = await this.ask(target, asked);
    assert.equal(response.status, status, `${target}: ${response.status === status ? "" : await response.text()}`);
    return response;
  }

  /** The code of an error, in the registry's shape. */
  async refused(status: number, target: string, asked: Asked = {}): Promise<string> {
    const response = await this.expect(status, target, asked);
    const { errors } = (await response.json()) as { errors: [{ code: string; message: string }] };
    assert.ok(errors[0].message);
    return errors[0].code;
  }

  async pushBlob(name: string, bytes: Uint8Array | string): Promise<string> {
    const begun = await this.expect(202, `POST /v2/${name}/blobs/uploads/`);
    const digest = digestOf(bytes);
    await this.expect(201, `PUT ${begun.headers.get("location")}?digest=${digest}`, { body: bytes });
    return digest;
  }

  async pushImage(name: string, tag: string, more: Record<string, unknown> = {}): Promise<string> {
    const config = `{"architecture":"amd64","os":"linux","seed":"${randomBytes(8).toString("hex")}"}`;
    const layer = randomBytes(1000);
    const descriptor = async (bytes: Uint8Array | string, mediaType: string) => ({
      mediaType,
      digest: await this.pushBlob(name, bytes),
      size: bytes.length,
    });
    const document = JSON.stringify({
      schemaVersion: 2,
      mediaType: MANIFEST,
      config: await descriptor(config, "application/vnd.oci.image.config.v1+json"),
      layers: [await descriptor(layer, "application/vnd.oci.image.layer.v1.tar")],
      ...more,
    });
    await this.expect(201, `PUT /v2/${name}/manifests/${tag}`, {
      body: document,
      headers: { "content-type": MANIFEST },
    });
    return digestOf(document);
  }
}

export async function openRegistry(t: TestContext, env: Record<string, string> = {}): Promise<RegistryClient> {
  return new RegistryClient(await testPlatform(t, env));
}
