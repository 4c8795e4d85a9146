import { readFile } from "node:fs/promises";

/** Credentials of a registry. Never logged, never part of an error. */
export interface Credentials {
  username: string;
  password: string;
}

/** Docker's config lists the hub under its old URL. */
const ALIASES: Record<string, readonly string[]> = {
  "registry-1.docker.io": ["https://index.docker.io/v1/", "index.docker.io", "docker.io", "registry-1.docker.io"],
};

interface DockerConfig {
  auths?: Record<string, { auth?: string; username?: string; password?: string }>;
}

/** Reads a `docker login` file each time, so that a new login applies at once. */
export class CredentialFile {
  readonly #file: string | undefined;

  constructor(file: string | undefined) {
    this.#file = file;
  }

  async find(registry: string): Promise<Credentials | undefined> {
    if (this.#file === undefined) return undefined;
    let config: DockerConfig;
    try {
      config = JSON.parse(await readFile(this.#file, "utf8")) as DockerConfig;
    } catch (thrown) {
      // A parse error may quote the file.
      const why = (thrown as { code?: string }).code ?? "it is not JSON";
      throw new Error(`the file of setting registry_config cannot be read: ${why}`);
    }
    const names = ALIASES[registry] ?? [registry, `https://${registry}`, `http://${registry}`];
    const entry = names.map((name) => config.auths?.[name]).find((found) => found !== undefined);
    return entry && credentialsOf(entry);
  }
}

function credentialsOf({
  auth,
  username,
  password,
}: NonNullable<DockerConfig["auths"]>[string]): Credentials | undefined {
  if (username !== undefined && password !== undefined) return { username, password };
  const plain = Buffer.from(auth ?? "", "base64").toString();
  const colon = plain.indexOf(":");
  return colon < 1 ? undefined : { username: plain.slice(0, colon), password: plain.slice(colon + 1) };
}

export const basic = ({ username, password }: Credentials): string =>
  `Basic ${Buffer.from(`${username}:${password}`).toString("base64")}`;
