/** A platform with an app, for tests of the Volumes API on the sim disk. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type Answer, type TestPlatform, testPlatform } from "./platform.ts";
import { tempDir, until } from "./support.ts";

const HOSTS = `
[[hosts]]
id = "000a"
region = "ams"
zone = "a1"
cpus = 4
memory_mb = 2048
[[hosts]]
id = "000b"
region = "ams"
zone = "a2"
cpus = 8
memory_mb = 8192
[[hosts]]
id = "000c"
region = "fra"
zone = "f1"
`;

interface Rig extends TestPlatform {
  /** A request about the volumes of app `web`. */
  volumes(target: string, body?: object): Promise<Answer>;
  until(target: string, done: (answer: Answer) => boolean): Promise<Answer>;
}

export async function openApi(t: TestContext, env: Record<string, string> = {}): Promise<Rig> {
  const platform = await testPlatform(t, env);
  await platform.ask("POST /v1/apps", { body: { app_name: "web" } });
  const volumes: Rig["volumes"] = (target, body) => {
    const [method, path = ""] = target.split(" ");
    return platform.ask(`${method} /v1/apps/web/volumes${path}`, body ? { body } : {});
  };
  return {
    ...platform,
    volumes,
    async until(target, done) {
      return await until(target, async () => {
        const answer = await volumes(target);
        return done(answer) && answer;
      });
    },
  };
}

export async function withHosts(t: TestContext): Promise<Rig> {
  const config = join(tempDir(), "hangar.toml");
  writeFileSync(config, HOSTS);
  return await openApi(t, { HANGAR_CONFIG: config });
}

export const machine = (volume: string, more: object = {}) => ({
  body: { config: { image: "web:1", mounts: [{ volume, path: "/data" }] }, ...more },
});
