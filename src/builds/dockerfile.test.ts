import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { checkContext } from "./context-list.ts";
import { baseImages } from "./dockerfile.ts";
import { BUILD_LIMITS } from "./limits.ts";

const bases = (text: string, args: Record<string, string> = {}, target?: string): string[] =>
  baseImages(text, { args, target }, BUILD_LIMITS);

/** Longer work would block other requests. */
const SHORT_MS = 3000;

/** Measured in CPU time, which is independent of other programs. */
function isShort(work: () => void): void {
  const began = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(began);
  const took = Math.round((user + system) / 1000);
  assert.ok(took < SHORT_MS, `it took ${took} ms`);
}

suite("dockerfiles", () => {
  test("the images that a Dockerfile begins with are found, by arguments and defaults, without its stages", () => {
    const text = `# syntax=docker/dockerfile:1
      ARG BASE=debian VERSION
      ARG TAG=$VERSION
      FROM \${BASE}:\${TAG:-12} AS first
      FROM --platform=$BUILDPLATFORM \\
        $OTHER
      COPY --from=first /a /a
      COPY --chown=1:1 --from=tools:1 /b /b
      RUN --mount=type=bind,from=more:2,target=/x true
      RUN true`;
    assert.deepEqual(bases(text, { OTHER: "python:3" }), ["debian:12", "tools:1", "more:2"]);
    assert.deepEqual(bases(`ARG OTHER\n${text}`, { OTHER: "python:3", VERSION: "13" }), [
      "debian:12",
      "python:3",
      "tools:1",
      "more:2",
    ]);
  });

  test("images of stages that the target does not need are not asked for", () => {
    const text = `FROM --platform=$BUILDPLATFORM golang:1 AS Builder
      RUN true
      FROM builder AS dev
      COPY --from=docker:1 / /
      FROM --platform=linux/s390x other:1
      FROM debian:12 AS debian
      FROM scratch
      COPY --from=builder /a /a
      COPY --from=3 /b /b
      RUN --mount=type=bind,from=tools:1,target=/x true`;
    assert.deepEqual(bases(text), ["golang:1", "debian:12", "tools:1"]);
    assert.deepEqual(bases(text, {}, "builder"), ["golang:1"]);
    assert.deepEqual(bases(text, {}, "dev"), ["golang:1", "docker:1"]);
    assert.deepEqual(bases(text, {}, "1"), ["golang:1", "docker:1"]);
    assert.throws(() => bases(text, {}, "2"), { code: "build_refused", message: /linux\/s390x/ });
    assert.deepEqual(bases("FROM debian AS debian\nFROM debian\n"), ["debian"]);
  });

  test("a hostile Dockerfile is read in little time and memory, and refused", () => {
    const many = 200_000;
    const grown = Array.from({ length: 60 }, (_, i) => `ARG a${i + 1}=$a${i}$a${i}`).join("\n");
    const hostile = {
      "variables made of each other": `ARG a0=xxxxxxxx\n${grown}\nFROM $a60\n`,
      "names without an end": `FROM ${"${a-".repeat(many)}\n`,
      "one variable many times": `ARG a=${"x".repeat(1000)}\nFROM ${"$a".repeat(many)}\n`,
      "many images": `FROM scratch\n${Array.from({ length: 20 }, (_, i) => `COPY --from=image:${i} / /`).join("\n")}`,
    };
    for (const [what, text] of Object.entries(hostile))
      isShort(() => assert.throws(() => bases(text), { code: "build_refused" }, what));
    isShort(() => void bases(`FROM a AS b\n${"FROM b AS b\n".repeat(many / 4)}`));
    const harmless = [" --mount=a".repeat(many), "\\ ".repeat(many), `--mount=${"a".repeat(many)}`, "\t".repeat(many)];
    for (const rest of harmless) isShort(() => void bases(`RUN ${rest}x\n`));
  });
});

suite("lists of build contexts", () => {
  const sha256 = "0".repeat(64);
  const check = (...files: Parameters<typeof checkContext>[0]): void =>
    checkContext([...files, { path: "Dockerfile", sha256 }], "Dockerfile", BUILD_LIMITS);
  const refused = (message: RegExp, ...files: Parameters<typeof checkContext>[0]): void =>
    assert.throws(() => check(...files), { code: "build_refused", message });

  test("entries that lead out, come twice or lie below a file or link are refused, in either order", () => {
    check({ path: "a/b/c", sha256 }, { path: "a" }, { path: "a/l", link: "../../etc" }, { path: "a/b" });
    for (const path of ["/etc/passwd", "../a", "a/../b", "a//b", "./a", "a/.", ""]) refused(/inside/, { path, sha256 });
    refused(/comes twice/, { path: "a", sha256 }, { path: "a", link: "b" });
    refused(/below a, which is a link/, { path: "a", link: "/etc" }, { path: "a/passwd", sha256 });
    refused(/below a, which is a link/, { path: "a/passwd", sha256 }, { path: "a", link: "/etc" });
    refused(/below a\/b, which is a file/, { path: "a/b/c", sha256 }, { path: "a/b", sha256 });
    refused(/255 bytes/, { path: "ü".repeat(128), sha256 });
    refused(/zero byte/, { path: "a\0b", sha256 });
  });

  test("deep paths are refused, and as many entries as a list takes are checked in little time", () => {
    refused(/context_depth/, { path: `${"a/".repeat(2000)}f`, sha256 });
    const deep = "a/".repeat(BUILD_LIMITS.context_depth - 2);
    const files = Array.from({ length: 10_000 }, (_, i) => ({ path: `${i}/${deep}f`, sha256 }));
    isShort(() => check(...files));
  });
});
