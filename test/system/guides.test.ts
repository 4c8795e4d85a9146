/** The commands of the guides, page by page, in one shell each, on a platform that has what they speak of. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, type TestContext, test } from "node:test";
import { overSocket } from "../inside.ts";
import { testPlatform } from "../platform.ts";
import { shell, tempDir } from "../support.ts";
import { ROOT } from "./child.ts";

const BLOCK = /^ *```sh guide\n([\s\S]*?)^ *```$/gm;
const HANGAR = `hangar() { "${process.execPath}" "${join(ROOT, "bin/hangar.mjs")}" "$@"; }\nnpx() { shift; hangar "$@"; }`;

/** What a page takes for granted: its own files, or an app that is there. */
const BEFORE: Record<string, string> = {
  "volumes.md": "hangar apps create web",
  "hosts.md": "hangar apps create web",
  "git.md": "hangar apps create shop",
  "log-drains.md": "hangar apps create demo",
  "identity.md": "hangar apps create web",
  // The image that comes with the platform is there where machines are real.
  "images.md":
    "mkdir -p rootfs/bin && cp /bin/busybox rootfs/bin/sh && tar cf web.tar -C rootfs . && hangar images import hangar/hello rootfs",
};

async function furnished(t: TestContext) {
  const cwd = tempDir();
  const platform = await testPlatform(t);
  const { ask } = platform;
  await ask("POST /v1/apps", { body: { app_name: "machinery" } });
  const config = { image: "hangar/hello" };
  const machine: string = (await ask("POST /v1/apps/machinery/machines", { body: { config } })).body.id;
  await ask(`GET /v1/apps/machinery/machines/${machine}/wait`);
  const key = { provider: "github", api_key: "k" };
  const { connection } = (await ask("POST /v1/oauth/connections/api_key", { body: key })).body;
  const socket = `${await platform.local_api.open(machine)}/api`;
  const identity = await overSocket(socket, "POST /v1/tokens/oidc", { body: '{"aud":"sts.amazonaws.com"}' });
  symlinkSync(platform.data_dir, join(cwd, ".hangar"));
  const env = {
    HANGAR_URL: platform.base_url,
    HANGAR_TOKEN: platform.token,
    GITHUB_TOKEN: "k",
    MACHINE: machine,
    CONNECTOR: connection.id as string,
    IDENTITY: identity.text,
  };
  return { cwd, HOME: cwd, ...env };
}

const GUIDES = readdirSync(join(ROOT, "docs")).flatMap((page) => {
  if (!page.endsWith(".md")) return [];
  const text = readFileSync(join(ROOT, "docs", page), "utf8");
  const blocks = [...text.matchAll(BLOCK)].map(([, block = ""]) => block);
  return blocks.length > 0 ? [{ page, text, blocks }] : [];
});

suite("guides", () => {
  test("every guide with a setup has commands", () => {
    const pages = new Set(GUIDES.map(({ page }) => page));
    assert.deepEqual(
      Object.keys(BEFORE).filter((page) => !pages.has(page)),
      [],
    );
  });

  for (const { page, text, blocks } of GUIDES) {
    test(`the commands of docs/${page} work`, async (t) => {
      const env = await furnished(t);
      const file = /```toml\n(app = [\s\S]*?)```/.exec(text)?.[1];
      if (file) writeFileSync(join(env.cwd, "hangar.toml"), file);
      const script = ["set -eux -o pipefail", HANGAR, BEFORE[page] ?? "", ...blocks].join("\n");
      const { status, stdout, stderr } = await shell(script, env);
      assert.equal(status, 0, `${stdout}\n${stderr}`);
    });
  }
});
