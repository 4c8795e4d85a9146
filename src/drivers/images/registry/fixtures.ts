/** A small registry on loopback that serves the given images, and misbehaves on demand. */
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import type { TestContext } from "node:test";
import { digestOf } from "../blobs.ts";
import type { MadeImage } from "../fixtures.ts";

export interface SeenRequest {
  method: string;
  path: string;
  range: string | undefined;
  authorization: string | undefined;
}

/** Handles the request and returns true, or leaves it to the registry. */
export type Fault = (request: SeenRequest, response: ServerResponse, time: number) => boolean;

export interface TestRegistry {
  host: string;
  seen: SeenRequest[];
  /** Serves the image as `repository:tag`. */
  serve(repository: string, tag: string, image: MadeImage): string;
  blob(bytes: Buffer): string;
  manifest(repository: string, tag: string, bytes: Buffer, type?: string): void;
  fault: Fault | undefined;
}

export async function testRegistry(t: Pick<TestContext, "after">): Promise<TestRegistry> {
  const blobs = new Map<string, Buffer>();
  const manifests = new Map<string, { bytes: Buffer; type: string }>();
  const requests: SeenRequest[] = [];
  const server = createServer((request, response) => {
    const one = askedOf(request);
    requests.push(one);
    const time = requests.filter(({ path }) => path === one.path).length;
    if (registry.fault?.(one, response, time)) return;
    const [, repository = "", kind, which = ""] = /^\/v2\/(.+)\/(manifests|blobs)\/([^/]+)$/.exec(one.path) ?? [];
    const manifest = kind === "manifests" ? manifests.get(`${repository}:${which}`) : undefined;
    const bytes = manifest?.bytes ?? (kind === "blobs" ? blobs.get(which) : undefined);
    if (!bytes) return void response.writeHead(404).end('{"errors":[{"code":"NAME_UNKNOWN"}]}');
    send(
      response,
      bytes,
      one.range,
      manifest ? { "content-type": manifest.type, "docker-content-digest": digestOf(bytes) } : {},
    );
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const registry: TestRegistry = {
    host: `127.0.0.1:${(server.address() as AddressInfo).port}`,
    seen: requests,
    fault: undefined,
    blob(bytes) {
      blobs.set(digestOf(bytes), bytes);
      return digestOf(bytes);
    },
    manifest(repository, tag, bytes, type = "application/vnd.oci.image.manifest.v1+json") {
      for (const name of [tag, digestOf(bytes)]) manifests.set(`${repository}:${name}`, { bytes, type });
    },
    serve(repository, tag, image) {
      for (const bytes of image.blobs.values()) registry.blob(bytes);
      registry.manifest(repository, tag, image.manifest);
      return `${registry.host}/${repository}:${tag}`;
    },
  };
  return registry;
}

function askedOf({ method = "GET", url = "/", headers }: IncomingMessage): SeenRequest {
  return { method, path: url.split("?")[0] ?? "", range: headers.range, authorization: headers.authorization };
}

export function send(
  response: ServerResponse,
  bytes: Buffer,
  range: string | undefined,
  headers: Record<string, string> = {},
): void {
  const from = Number(/^bytes=(\d+)-$/.exec(range ?? "")?.[1] ?? 0);
  const part = from > 0 ? { "content-range": `bytes ${from}-${bytes.length - 1}/${bytes.length}` } : {};
  response.writeHead(from > 0 ? 206 : 200, { ...headers, ...part, "content-length": bytes.length - from });
  response.end(bytes.subarray(from));
}
