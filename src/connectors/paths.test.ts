/**
 * No path that a common server interprets as a blocked one passes (G1): paths are mutated at random and interpreted the
 * way servers do, and any path that a server takes for a blocked one must have been refused. A naive matcher that
 * compares texts is included: the test must detect it.
 */
import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { random, runs, seed } from "../../test/support.ts";
import { pathProblem } from "./paths.ts";
import { judge } from "./policy.ts";

const SPRITE = { name: "web-1", labels: [] };
const BLOCKED = ["/admin", "/admin/users", "/keys/*", "/v1/a:b", "/caf%C3%A9"];
const POLICY = { allow_all: true, blocked_endpoints: BLOCKED };

/** Ways in which servers normalize a path. */
const READERS: readonly ((path: string) => string)[] = [
  (path) => decode(path),
  (path) => decode(decode(path)),
  (path) => path.replaceAll("\\", "/"),
  (path) => path.replaceAll(/;[^/]*/g, ""),
  (path) => path.replaceAll(/\/{2,}/g, "/"),
  (path) => resolveDots(path),
  (path) => path.normalize("NFKC"),
  (path) => path.toLowerCase(),
  (path) => path.replaceAll(/[. ]+(?=\/|$)/g, ""),
  (path) => path.split(/[\0?#]/)[0] ?? "",
  (path) => (path.length > 1 ? path.replace(/\/$/, "") : path),
];

const decode = (text: string): string =>
  // Bytes that are no UTF-8 are read as the letters they were made from, as lenient decoders do.
  Buffer.from(
    text.replaceAll(/%([0-9a-f]{2})/gi, (_, hex: string) => String.fromCharCode(Number.parseInt(hex, 16))),
    "latin1",
  )
    .toString("latin1")
    .replaceAll(/\xc0\xae/g, ".")
    .replaceAll(/\xc0\xaf/g, "/")
    .replaceAll(/[\xc2-\xf4][\x80-\xbf]+/g, (bytes) => Buffer.from(bytes, "latin1").toString());

function resolveDots(path: string): string {
  const out: string[] = [];
  for (const segment of path.split("/").slice(1)) {
    if (segment === "..") out.pop();
    else if (segment !== ".") out.push(segment);
  }
  return `/${out.join("/")}`;
}

/** Whether a server with this way of reading takes the path for a blocked one. */
function readsAsBlocked(path: string): boolean {
  const meant = BLOCKED.map((pattern) => decode(pattern).toLowerCase());
  return meant.some((text) =>
    text.endsWith("*") ? path.startsWith(text.slice(0, -1)) && path.length >= text.length : path === text,
  );
}

/** Mutations of a path that at least one server undoes. */
const BENDS: readonly ((path: string, next: () => number) => string)[] = [
  (path, next) => at(path, next, (char) => `%${char.charCodeAt(0).toString(16)}`),
  (path, next) => at(path, next, (char) => `%25${char.charCodeAt(0).toString(16)}`),
  (path, next) => at(path, next, (char) => (char === "/" ? "//" : char)),
  (path, next) => at(path, next, (char) => (char === "/" ? "/./" : char)),
  (path, next) => at(path, next, (char) => (char === "/" ? "/x/../" : char)),
  (path, next) => at(path, next, (char) => (char === "/" ? "/%2e%2e/x/..%2f" : char)),
  (path, next) => at(path, next, (char) => (char === "/" ? "\\" : char)),
  (path, next) => at(path, next, (char) => (char === "/" ? "%5c" : char)),
  (path, next) => at(path, next, (char) => (char === "/" ? "%2F" : char)),
  (path, next) => at(path, next, (char) => (char === "/" ? "%c0%af" : char)),
  (path, next) => at(path, next, (char) => (char === "/" ? "%EF%BC%8F" : char)),
  (path, next) => at(path, next, (char) => (char === "/" ? ";x=1/" : char)),
  (path, next) => at(path, next, (char) => char.toUpperCase()),
  (path, next) => at(path, next, (char) => (/[a-z]/.test(char) ? fullWidth(char) : char)),
  (path) => `${path}/`,
  (path) => `${path}.`,
  (path) => `${path}%20`,
  (path) => `${path}%00.json`,
  (path) => `${path}%3fx`,
  (path) => `${path}%23`,
  (path) => `${path};a`,
  (path) => `/x/..${path}`,
  (path) => `/.${path}`,
];

const fullWidth = (char: string): string => encodeURIComponent(String.fromCharCode(char.charCodeAt(0) - 0x21 + 0xff01));

function at(path: string, next: () => number, change: (char: string) => string): string {
  const place = Math.floor(next() * path.length);
  return path.slice(0, place) + change(path.charAt(place)) + path.slice(place + 1);
}

const TARGETS = ["/admin", "/admin/users", "/keys/1", "/keys/a/b", "/v1/a:b", "/caf%C3%A9"];
const pick = <T>(list: readonly T[], next: () => number): T => list[Math.floor(next() * list.length)] as T;

/** Paths that at least one way of reading takes for a blocked one. */
function* dangerous(next: () => number, count: number): Generator<string> {
  for (let made = 0; made < count; ) {
    let path = pick(TARGETS, next);
    for (let bends = Math.floor(next() * 4); bends >= 0; bends--) path = pick(BENDS, next)(path, next);
    let read = path;
    for (let readings = Math.floor(next() * 6); readings >= 0; readings--) read = pick(READERS, next)(read);
    if (!readsAsBlocked(read.toLowerCase()) && !readsAsBlocked(read)) continue;
    made++;
    yield path;
  }
}

const passes = (path: string): boolean =>
  pathProblem(path, { encoded: false }) === undefined && judge(POLICY, SPRITE, path).allowed;

/** The matcher everyone writes first. */
const naive = (path: string): boolean =>
  !BLOCKED.some((pattern) => (pattern.endsWith("*") ? path.startsWith(pattern.slice(0, -1)) : path === pattern));

suite("connector paths (G1)", () => {
  test("no path that a server could read as a blocked one passes, and a plain comparison is detected", (t) => {
    const next = random(seed(t));
    const count = runs(4000, 20_000);
    const through: string[] = [];
    let fooled = 0;
    for (const path of dangerous(next, count)) {
      if (passes(path)) through.push(path);
      if (naive(path)) fooled++;
    }
    assert.deepEqual(through.slice(0, 10), []);
    assert.ok(fooled > count / 5, `the plain comparison let ${fooled} of ${count} through`);
    t.diagnostic(`${count} paths, 0 through; a plain comparison lets ${fooled} through`);
  });

  test("sixty known spellings of a blocked path are refused", () => {
    const spellings = [
      ..."/admin/ /ADMIN /Admin /aDmin/ /%61dmin /%41dmin /adm%69n /admi%6E //admin /./admin /x/../admin /x/%2e%2e/admin".split(
        " ",
      ),
      ..."/x/%2E%2E/admin /x/..%2fadmin /x/..%2Fadmin /x%2f..%2fadmin /%2e/admin /.%2e/admin /%2e./x/admin /..;/admin".split(
        " ",
      ),
      ..."/x/..;/admin /admin;x /admin;x=1 /;x/admin /admin%3b /admin%3Bx /admin%00 /admin%00.json /admin%0a /admin%0d".split(
        " ",
      ),
      ..."/admin%20 /admin%20/ /admin. /admin./ /admin.. /admin%2e /admin%3f /admin%3Fx /admin%23 /admin%09".split(" "),
      ..."\\admin /x\\..\\admin /%5cadmin /x%5c..%5cadmin /%5C%5Cadmin /%252e%252e/admin /x%252f..%252fadmin /%2561dmin".split(
        " ",
      ),
      ..."/%c0%afadmin /x/%c0%ae%c0%ae/admin /%ef%bc%8fadmin /%EF%BC%8Fadmin /%EF%BD%81dmin /x/%EF%BC%8E%EF%BC%8E/admin".split(
        " ",
      ),
      ..."/admin# /admin#x admin http://x/admin /admin%7f /%u0061dmin /admin%".split(" "),
    ];
    assert.ok(spellings.length >= 60);
    assert.deepEqual(spellings.filter(passes), []);
  });

  test("real paths of providers pass unchanged", () => {
    const plain = [
      "/",
      "/user",
      "/repos/a/b/contents/x.md",
      "/v1/models/gpt-4o:stream",
      "/a/@me",
      "/caf%C3%A9s",
      "/x%20y/z",
    ];
    const signs = ["/a(b)!$&'*+,=~_-.x", "/files/.hidden", "/a..b/c", "/%E6%97%A5%E6%9C%AC", "/administrators"];
    for (const path of [...plain, ...signs]) assert.ok(passes(path), path);
  });

  test("a connector that opts in gets encoded slashes, and never leaves its base path", () => {
    const loose = (path: string) => pathProblem(path, { encoded: true });
    for (const path of ["/git/refs/heads%2Ffeature", "/a;b", "/a%25b", "//a", "/a%3Fb"])
      assert.equal(loose(path), undefined, path);
    const escapes =
      "/.. /a/../b /%2e%2e/a /..%2fa /a%2f..%2fb /%252e%252e/a /a%5c..%5cb /..;/a /a%00 /a\\b /%25252e%25252e/ a".split(
        " ",
      );
    for (const path of escapes) assert.notEqual(loose(path), undefined, path);
  });
});

suite("path validation", () => {
  const strict = (path: string): string | undefined => pathProblem(path, { encoded: false });
  const lenient = (path: string): string | undefined => pathProblem(path, { encoded: true });

  test("canonical paths are accepted", () => {
    const fine = ["/", "/a", "/a/", "/a.b/c-d_e~f", "/v1/a:b@c,d=e&f+g!$'()*", "/caf%C3%A9", "/a%20b", "/.well-known"];
    for (const path of fine) assert.equal(strict(path), undefined, path);
    assert.equal(lenient("/a/...b"), undefined);
  });

  test("each fault of a path is named, and merely ambiguous paths pass in lenient mode", () => {
    const never: [string, RegExp][] = [
      ["", /slash/],
      ["a/b", /slash/],
      ["/a b", /must be encoded/],
      ["/caf\u00e9", /must be encoded/],
      ...['"', "<", ">", "\\", "^", "`", "{", "|", "}", "#", "?", "\u007f"].map((c): [string, RegExp] => [
        `/a${c}`,
        /must be encoded/,
      ]),
      ["/a%", /broken percent/],
      ["/a%2", /broken percent/],
      ["/a%g0", /broken percent/],
      ["/a%00", /control character/],
      ["/a%1f", /control character/],
      ["/a%7F", /control character/],
      ["/a/../b", /`\.` or `\.\.` segment/],
      ["/a/.", /`\.` or `\.\.` segment/],
      ["/a/%2e%2E/b", /`\.` or `\.\.` segment/],
      ["/a/%252e%252e/b", /`\.` or `\.\.` segment/],
      ["/a/..;x/b", /`\.` or `\.\.` segment/],
      ["/a/..%20/b", /`\.` or `\.\.` segment/],
      ["/a%5Cb", /encoded backslash/],
      ["/a%25%35%43b", /encoded backslash/],
      ["/a%E9", /not UTF-8/],
    ];
    for (const [path, problem] of never) {
      assert.match(strict(path) ?? "", problem, path);
      assert.match(lenient(path) ?? "", problem, path);
    }
    const ambiguous: [string, RegExp][] = [
      ["/a//b", /two slashes/],
      ["/a;x", /semicolon/],
      ["/a%2Fb", /encoded \//],
      ["/a%2fb", /encoded \//],
      ["/a%3Fb", /encoded \//],
      ["/a%23b", /encoded \//],
      ["/a%3Bb", /encoded \//],
      ["/caf%c3%A9", /lower case/],
      ["/caf%C3%a9", /lower case/],
      ...["%30", "%39", "%41", "%4F", "%50", "%5A", "%61", "%6F", "%70", "%7A", "%2D", "%5F", "%7E"].map(
        (c): [string, RegExp] => [`/x${c}x`, /encodes a letter, digit/],
      ),
      ["/a./b", /ends with a dot or a blank/],
      ["/a.", /ends with a dot or a blank/],
      ["/a%20", /ends with a dot or a blank/],
      ["/a%20/b", /ends with a dot or a blank/],
      ["/%EF%BC%A1dmin", /look-alike/],
    ];
    for (const [path, problem] of ambiguous) {
      assert.match(strict(path) ?? "", problem, path);
      assert.equal(lenient(path), undefined, path);
    }
  });
});
