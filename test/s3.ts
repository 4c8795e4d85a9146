/** A real S3 server for tests: s3rver from the npm registry, in a process of its own, from tools/. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { freePort } from "#proxy/fixtures.ts";
import type { S3Place } from "#stores/objects/s3.ts";

const program = join(import.meta.dirname, "../tools/node_modules/s3rver/bin/s3rver.js");

/** Why there is none here, or undefined. */
export const s3Missing = (): string | undefined =>
  existsSync(program) ? undefined : "s3rver is not installed (npm install in tools/)";

export interface S3Server extends S3Place {
  stop(): Promise<void>;
}

/** A server with one empty bucket, which keeps its objects in `dir`. */
export async function startS3(dir: string): Promise<S3Server> {
  const port = await freePort();
  const args = [program, "-d", dir, "-a", "127.0.0.1", "-p", String(port), "--configure-bucket", "hangar"];
  const child = spawn(process.execPath, ["--no-deprecation", "--openssl-legacy-provider", ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(child, "exit");
  // It says that it listens, and only then.
  await Promise.race([
    once(child.stdout, "data"),
    ended.then(() => {
      throw new Error("s3rver ended before it listened");
    }),
  ]);
  return {
    endpoint: `http://127.0.0.1:${port}/hangar`,
    prefix: "some/where/",
    region: "us-east-1",
    access_key: "S3RVER",
    secret_key: "S3RVER",
    async stop() {
      child.kill("SIGKILL");
      await ended;
    },
  };
}
