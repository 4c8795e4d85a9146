import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { folderOf } from "../../../test/support.ts";
import { detect } from "./detect.ts";

const json = (value: object): string => JSON.stringify(value);

/** Folders as in the frameworks' own guides, and what must be in their Dockerfile. */
const KINDS: readonly [kind: string, files: Record<string, string>, in_dockerfile: RegExp][] = [
  [
    "Node",
    { "package.json": json({ scripts: { start: "node ." } }) },
    /npm install --omit=dev[\s\S]*CMD \["npm","start"\]/,
  ],
  [
    "Node",
    { "package.json": json({ main: "web.js" }), "web.js": "", "package-lock.json": "{}" },
    /npm ci --omit[\s\S]*\["node","web.js"\]/,
  ],
  [
    "Node",
    { "package.json": json({ scripts: { start: "x", build: "y" } }) },
    /RUN npm install\n[\s\S]*npm run build && npm prune/,
  ],
  ["Python", { "requirements.txt": "fastapi\nuvicorn[standard]==0.3\n", "main.py": "" }, /\["uvicorn","main:app",/],
  ["Python", { "requirements.txt": "Flask>=3\n", "app.py": "" }, /\["flask","--app","app","run"/],
  ["Python", { "requirements.txt": "flask\ngunicorn\n", "app.py": "" }, /\["gunicorn","app:app"/],
  [
    "Python",
    { "pyproject.toml": '[project]\ndependencies = [\n  "uvicorn",\n]\n', "main.py": "" },
    /pip install --no-cache-dir \.\n[\s\S]*uvicorn/,
  ],
  ["Python", { "requirements.txt": "requests\n", "server.py": "" }, /CMD \["python3","server.py"\]/],
  ["Python", { "manage.py": "", "requirements.txt": "django\n" }, /"manage.py","runserver","0.0.0.0:8080"/],
  ["Go", { "go.mod": "module x\n\ngo 1.23.1\n", "main.go": "" }, /FROM golang:1.23 AS build[\s\S]*FROM scratch/],
  ["Ruby", { Gemfile: "", "bin/rails": "", "package.json": "{}" }, /"bin\/rails","server"/],
  ["Ruby", { Gemfile: "", "config.ru": "" }, /"rackup"/],
  ["PHP", { "composer.json": "{}", "public/index.php": "" }, /composer install[\s\S]*"-t","public"/],
  ["PHP", { "index.php": "" }, /"-t","\."/],
  ["static files", { "index.html": "" }, /COPY \. \/srv[\s\S]*httpd/],
];

suite("the kind of an app by its folder", () => {
  for (const [kind, files, expected] of KINDS) {
    test(`${Object.keys(files).join(" and ")} make ${kind}`, () => {
      const found = detect(folderOf(files));
      assert.deepEqual([found.kind, found.port], [kind, 8080]);
      assert.match(found.image?.dockerfile(found.image.base) ?? "", expected);
    });
  }

  test("a Dockerfile of the folder is used as it is, with the port it exposes", () => {
    const found = detect(folderOf({ Dockerfile: "FROM x\nEXPOSE 3000/tcp\n", "package.json": "{}" }));
    assert.deepEqual([found.kind, found.port, found.image], ["Dockerfile", 3000, undefined]);
  });

  test("a folder without a way to run it is refused with the missing file", () => {
    const refused: [Record<string, string>, RegExp][] = [
      [{}, /has none of Dockerfile, compose\.yaml, package\.json/],
      [{ "package.json": "{}" }, /no start script/],
      [{ "package.json": "{" }, /package\.json cannot be read/],
      [{ "requirements.txt": "x" }, /no manage\.py, main\.py/],
      [{ Gemfile: "" }, /neither bin\/rails nor config\.ru/],
    ];
    for (const [files, expected] of refused) assert.throws(() => detect(folderOf(files)), expected);
  });
});
