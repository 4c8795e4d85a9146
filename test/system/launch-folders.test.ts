/**
 * From a folder to a URL with `hangar launch` and `hangar deploy`: static files, Flask, Express and Sinatra as Debian has them,
 * Go and PHP, on bases made of Debian's packages, no registry; then the same folder again, and with another line in it.
 */
import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { after, before, suite, test } from "node:test";
import { buildahMissing } from "#drivers/builds/builder-root.ts";
import { realMachinesMissing } from "../rootfs.ts";
import { shell, tempDir } from "../support.ts";
import { ROOT } from "./child.ts";
import { type ForeignMachines, foreignMachines } from "./foreign-machines.ts";

const skip =
  realMachinesMissing() ??
  buildahMissing() ??
  (spawnSync("which", ["mmdebstrap"]).status === 0 ? undefined : "mmdebstrap is not installed");
/** An address of this host whose ports 80 and 443 are free. */
const EDGE = `127.${100 + (process.pid % 100)}.${(process.pid >> 8) % 250}.${1 + (process.pid % 250)}`;

interface App {
  base: string;
  include?: string;
  /** What `launch` says that it is. */
  is: RegExp;
  files: Record<string, string>;
}

const APPS: Record<string, App> = {
  static: { base: "static", is: /static files/, files: { "index.html": "hello from static\n" } },
  python: {
    base: "python",
    include: "python3-flask",
    is: /Python: .* and flask runs app\.py/,
    files: {
      "requirements.txt": "flask\n",
      "app.py": `from flask import Flask\n\napp = Flask(__name__)\n\n@app.get("/")\ndef index():\n    return "hello from python\\n"\n`,
    },
  },
  node: {
    base: "node",
    include: "node-express",
    is: /Node: package\.json has a start script/,
    files: {
      "package.json": JSON.stringify({ dependencies: { express: "^4.18.2" }, scripts: { start: "node server.js" } }),
      "server.js": `const app = require("express")();

app.get("/", (request, response) => response.send("hello from node\\n"));
app.listen(process.env.PORT);
`,
    },
  },
  ruby: {
    base: "ruby",
    include: "ruby-sinatra,puma",
    is: /Ruby: it has a Gemfile and config\.ru/,
    files: {
      Gemfile: `source "https://rubygems.org"\n\ngem "sinatra"\ngem "puma"\n`,
      "config.ru": `require "./app"\nrun Sinatra::Application\n`,
      "app.rb": `require "sinatra"\n\nget("/") { "hello from ruby\\n" }\n`,
    },
  },
  php: {
    base: "php",
    is: /PHP: it has composer\.json/,
    files: {
      "composer.json": JSON.stringify({ require: { php: ">=8" }, autoload: { "psr-4": { "Shop\\": "src/" } } }),
      "public/index.php": `<?php\nrequire __DIR__ . "/../vendor/autoload.php";\necho (new Shop\\Page())->text();\n`,
      "src/Page.php": `<?php\nnamespace Shop;\n\nclass Page {\n  function text() {\n    return "hello from php\\n";\n  }\n}\n`,
    },
  },
  go: {
    base: "go",
    is: /Go: go\.mod requires Go 1\.19/,
    files: {
      "go.mod": "module example.com/shop\n\ngo 1.19\n",
      "main.go": `package main

import (
\t"fmt"
\t"net/http"
\t"os"
)

func main() {
\thttp.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) { fmt.Fprintln(w, "hello from go") })
\thttp.ListenAndServe(":"+os.Getenv("PORT"), nil)
}
`,
    },
  },
};

/** Steps of a build's output by what became of them; FROM takes no time. */
function steps(output: string): { ran: string[]; cached: string[] } {
  const words = new Map<string, string>();
  for (const [, at = "", text = ""] of output.matchAll(/^(\[[^\]]*\d+\/\d+\]) (?!CACHED|done in)(.*)$/gm))
    words.set(at, text);
  const cached = [...output.matchAll(/^(\[[^\]]*\]) CACHED$/gm)].map(([, at = ""]) => words.get(at) ?? "");
  return { ran: [...words.values()].filter((text) => !text.startsWith("FROM") && !cached.includes(text)), cached };
}

suite("a folder becomes a URL", { skip, timeout: 60 * 60_000 }, () => {
  const ends: (() => unknown)[] = [];
  const home = tempDir();
  let platform: ForeignMachines;
  before(async () => {
    const later = { after: (end: () => unknown) => void ends.push(end) };
    platform = await foreignMachines(later, { HANGAR_PROXY_LISTEN_HOST: EDGE });
  });
  after(async () => {
    for (const end of ends) await end();
  });

  async function hangar(line: string, cwd = home): Promise<string> {
    const env = { cwd, HOME: home, HANGAR_DATA_DIR: platform.data_dir };
    const { status, stdout, stderr } = await shell(
      `"${process.execPath}" "${join(ROOT, "bin/hangar.mjs")}" ${line}`,
      env,
    );
    assert.equal(status, 0, `hangar ${line}: ${stdout}${stderr}`);
    return stdout + stderr;
  }
  const curl = async (name: string): Promise<string> => {
    const how = `--retry 20 --retry-all-errors --retry-delay 1 --resolve "${name}.localhost:80:${EDGE}"`;
    const { stdout, stderr } = await shell(`curl -sS --fail ${how} http://${name}.localhost/`, {});
    return stdout || stderr;
  };

  for (const [name, { base, include, is, files }] of Object.entries(APPS))
    test(`${name}: launch, deploy, curl; an unchanged folder is all cache, another line is not`, async () => {
      const folder = join(home, name);
      for (const [file, text] of Object.entries(files)) {
        mkdirSync(dirname(join(folder, file)), { recursive: true });
        writeFileSync(join(folder, file), text);
      }
      await hangar(`images base ${base} --suite bookworm${include ? ` --include ${include}` : ""}`);
      const launched = await hangar("launch", folder);
      assert.match(launched, is);
      assert.match(readFileSync(join(folder, "Dockerfile"), "utf8"), new RegExp(`^FROM hangar/${base}:bookworm`));
      const first = await hangar("deploy --stable-for 1s", folder);
      assert.match(first, /^at http:\/\//m, "it prints the URL");
      assert.equal(await curl(name), `hello from ${name}\n`);
      assert.deepEqual(steps(first).cached, []);

      const again = await hangar("deploy --stable-for 1s", folder);
      assert.match(again, /sent 0 files, 0 B/);
      assert.deepEqual(steps(again), { ran: [], cached: steps(first).ran });

      for (const [file, text] of Object.entries(files))
        writeFileSync(join(folder, file), text.replace("hello from", "changed in"));
      const changed = await hangar("deploy --stable-for 1s", folder);
      assert.match(changed, /sent 1 file,/);
      assert.equal(await curl(name), `changed in ${name}\n`);
      // Dependencies are in steps before the code.
      const slow = steps(first).ran.filter((text) => /^RUN (python3|pip|node|npm|bundle|go mod)/.test(text));
      assert.deepEqual(
        slow.filter((text) => steps(changed).ran.includes(text)),
        [],
      );
      await hangar(`apps delete ${name} --force`);
    });
});
