/** `hangar launch`: the files it writes can be deployed, and nothing that a person wrote is lost. */
import assert from "node:assert/strict";
import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { suite, test } from "node:test";
import { readAppFile } from "#cli/app-file/read.ts";
import { testPlatform } from "../platform.ts";
import { shell, tempDir } from "../support.ts";
import { ROOT } from "./child.ts";

suite("hangar launch", () => {
  test("hangar.toml, Dockerfile and .dockerignore are written, shown before, and not overwritten", async (t) => {
    const { data_dir } = await testPlatform(t);
    const cwd = tempDir();
    const hangar = (line: string) =>
      shell(`"${process.execPath}" "${join(ROOT, "bin/hangar.mjs")}" ${line}`, {
        cwd,
        HOME: cwd,
        HANGAR_DATA_DIR: data_dir,
      });
    writeFileSync(join(cwd, "package.json"), JSON.stringify({ scripts: { start: "node server.js" } }));
    const dry = await hangar("launch --name shop --dry-run");
    assert.match(
      dry.stdout,
      /Found Node: package\.json has a start script\.[\s\S]*--- hangar\.toml[\s\S]*--- Dockerfile/,
    );
    assert.deepEqual(readdirSync(cwd), ["package.json"], "nothing was written");

    const done = await hangar("launch --name shop --port 3000 --base hangar/hello");
    assert.match(done.stdout, /wrote hangar\.toml, Dockerfile, \.dockerignore\nNext: .*`hangar deploy`/);
    const { values, warnings } = readAppFile(undefined, cwd);
    assert.deepEqual([values["app"], warnings], ["shop", []]);
    assert.deepEqual((values["http_service"] as { internal_port: number }).internal_port, 3000);
    assert.match(readFileSync(join(cwd, "Dockerfile"), "utf8"), /^FROM hangar\/hello\n/);

    writeFileSync(join(cwd, "hangar.toml"), "# mine\n");
    const again = await hangar("launch --name shop");
    assert.equal(again.status, 2);
    assert.match(again.stderr, /has hangar\.toml: add --overwrite/);
    assert.equal(readFileSync(join(cwd, "hangar.toml"), "utf8"), "# mine\n");
    assert.equal((await hangar("launch --name shop --overwrite")).status, 0);
    assert.match(readFileSync(join(cwd, "hangar.toml"), "utf8"), /found a Dockerfile: it exposes port 8080/);

    for (const [line, expected] of [
      ["launch --name Shop", /makes no name of an app/],
      ["launch --name shop --port 70000", /--port is 1 to 65535/],
    ] as const) {
      const { status, stderr } = await hangar(`${line} --overwrite`);
      assert.deepEqual([status, expected.test(stderr)], [2, true], stderr);
    }
  });
});
