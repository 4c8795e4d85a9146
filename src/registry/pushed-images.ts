/** Pushed images, for those who run them. */
import { OWN_REGISTRY, type PushedImages } from "#machines/runtime/pushed-images.ts";
import type { BlobBytes } from "./bytes.ts";
import type { Registry, RepositoryAt } from "./service.ts";

interface Parts {
  registry: Registry;
  bytes: BlobBytes;
  /** The slug of an organization. */
  slugOf(org_id: string): Promise<string | undefined>;
  /** The platform's URL. */
  base_url(): string;
}

const LOOPBACK = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/;

export function pushedImages({ registry, bytes, slugOf, base_url }: Parts): PushedImages {
  /** Only repositories of the same organization. */
  const at = async (org_id: string, name: string): Promise<RepositoryAt | undefined> => {
    const slash = name.indexOf("/");
    const isOwn = slash > 0 && name.slice(0, slash) === (await slugOf(org_id));
    return isOwn ? { org_id, repository: name.slice(slash + 1), full: name } : undefined;
  };
  const known = async (org_id: string, name: string): Promise<RepositoryAt> =>
    (await at(org_id, name)) ?? { org_id, repository: "", full: name };
  return {
    isOwn(name) {
      if (name === OWN_REGISTRY) return true;
      const own = URL.parse(base_url());
      const reference = URL.parse(`http://${name}`);
      if (!own || !reference) return false;
      const same =
        reference.hostname === own.hostname || (LOOPBACK.test(reference.hostname) && LOOPBACK.test(own.hostname));
      return same && (name === own.host || reference.port === own.port);
    },
    async find(org_id, name, { tag, digest }) {
      const where = await at(org_id, name);
      if (!where) return undefined;
      const reference = digest === undefined ? { tag: tag ?? "latest" } : { digest };
      return (await registry.manifest(where, reference).catch(() => undefined))?.digest;
    },
    document: async (org_id, name, digest, signal) =>
      await registry.document(await known(org_id, name), digest, signal),
    async blob(org_id, name, digest, file, signal) {
      await bytes.fetch(await registry.blob(await known(org_id, name), digest), file, signal);
    },
  };
}
