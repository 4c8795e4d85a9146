/** Sends the build context, starts a build on the platform and shows its output until it ends. */
import type { Api } from "#client/api.ts";
import { ClientError } from "#client/client.ts";
import { count } from "#core/words.ts";
import { bytesText } from "../images/bytes-text.ts";
import type { Context } from "../verb.ts";
import { readContext } from "./context.ts";
import { StepPrinter } from "./steps.ts";

export type Build = Api["GET /v1/apps/:app_name/builds/:build_id"]["answer"];

export interface BuildInput {
  /** The folder with the context. */
  dir: string;
  dockerfile: string;
  ignorefile?: string | undefined;
  target?: string | undefined;
  args: Record<string, string>;
  secrets: Record<string, string>;
  no_cache: boolean;
  platform?: string | undefined;
}

export interface BuildResult {
  build: Build;
  /** What was sent of the context, and what it has. */
  sent_bytes: number;
  context_bytes: number;
}

export async function buildImage(context: Context, app_name: string, input: BuildInput): Promise<BuildResult> {
  const { client, say } = context;
  const { dir, dockerfile, ignorefile, target, args, secrets, no_cache, platform } = input;
  const params = { app_name };
  const { files, bytes, pack } = await readContext(dir, dockerfile, ignorefile);
  const digests = [...new Set(files.flatMap(({ sha256 }) => sha256 ?? []))];
  const { missing } = await client.call("POST /v1/apps/:app_name/builds/files/missing", {
    params,
    body: { files: digests },
  });
  const sent =
    missing.length === 0
      ? { bytes: 0 }
      : await client.upload("POST /v1/apps/:app_name/builds/files", {
          params,
          upload: ReadableStream.from(pack(missing)),
        });
  say(
    `Build context: ${count(digests.length, "file")}, ${bytesText(bytes)}; sent ${count(missing.length, "file")}, ${bytesText(sent.bytes)}`,
  );
  const body = {
    files,
    dockerfile,
    args,
    secrets,
    no_cache,
    ...(target === undefined ? {} : { target }),
    ...(platform === undefined ? {} : { platform }),
  };
  const { id } = await client.call("POST /v1/apps/:app_name/builds", { params, body });
  const build = await followBuild(context, app_name, id);
  return { build, sent_bytes: sent.bytes, context_bytes: bytes };
}

type LogMessage = { text?: string; build?: Build };

/** Streams the output of a build. Returns the build when it is complete, throws the build's error otherwise. */
export async function followBuild({ client, say }: Context, app_name: string, build_id: string): Promise<Build> {
  const route = "GET /v1/apps/:app_name/builds/:build_id/logs";
  const steps = new StepPrinter(say);
  const request = { params: { app_name, build_id }, query: { follow: true } };
  for await (const { text, build } of client.stream<typeof route, LogMessage>(route, request)) {
    if (text !== undefined) steps.write(text);
    if (!build) continue;
    steps.end();
    if (build.state === "complete") return build;
    throw new ClientError(0, {
      error: `build ${build.id} ${build.state === "failed" ? `failed: ${build.error ?? ""}` : `was ${build.state}`}`,
      hint: `hangar builds logs ${build.id} --app ${app_name}`,
    });
  }
  throw new ClientError(0, {
    error: `the output of build ${build_id} was interrupted; the platform may have been restarted`,
    hint: `hangar builds show ${build_id} --app ${app_name}`,
  });
}
