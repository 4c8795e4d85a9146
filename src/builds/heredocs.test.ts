import assert from "node:assert/strict";
import { suite, test } from "node:test";
import { HEREDOC_DIR, withoutHeredocs } from "./heredocs.ts";

const NONE = { args: {}, envOf: () => [] };
const plain = (text: string, source: Partial<Parameters<typeof withoutHeredocs>[1]> = {}) =>
  withoutHeredocs(text, { ...NONE, ...source });
const lines = (text: string): string[] => text.split("\n").filter(Boolean);

suite("here-documents of a Dockerfile", () => {
  test("a file without any stays as it is, to the byte", () => {
    const text = "# syntax=docker/dockerfile:1\r\nFROM a\nRUN echo $((1<<2)) '<<EOF'  \\\n # why\n  && true\n";
    assert.deepEqual(plain(text), { text, files: new Map() });
  });

  test("RUN <<EOF becomes a script for the stage's shell, with its flags", () => {
    const text =
      'FROM a\nSHELL ["/bin/bash", "-c"]\nRUN --mount=type=cache,target=/x <<EOF\nset -e\necho "$HOME"\nEOF\nUSER b\n';
    assert.deepEqual(lines(plain(text).text).slice(2), [
      `RUN --mount=type=cache,target=/x ${JSON.stringify(["/bin/bash", "-c", 'set -e\necho "$HOME"\n'])}`,
      "USER b",
    ]);
  });

  test("a command reads its documents, in order, with their tabs as the shell wants them", () => {
    const text = "FROM a\nRUN cat <<-A <<'B' > /x\n\tone\n\tA\ntwo\nB\n";
    const [, line = ""] = lines(plain(text).text);
    assert.equal(JSON.parse(line.slice(4))[2], "cat <<-A <<'B' > /x\n\tone\n\tA\ntwo\nB\n");
  });

  test("a document that names its interpreter is run as a program", () => {
    const [, line = ""] = lines(plain("FROM a\nRUN <<EOF\n#!/usr/bin/env python3\nprint(1)\nEOF\n").text);
    assert.match(
      JSON.parse(line.slice(4))[2],
      /^cat > \S+ <<'HANGAR_END'\n#!\/usr\/bin\/env python3\nprint\(1\)\nHANGAR_END\n/,
    );
  });

  test("COPY <<EOF becomes a file of that name, with the variables of its stage", () => {
    const text = [
      "ARG V=1",
      "FROM base AS one",
      'ENV A=a B="two words"',
      "FROM one",
      "ARG V",
      "ARG W=w",
      "COPY --chmod=755 <<app.conf <<'raw' /etc/",
      // biome-ignore lint/suspicious/noTemplateCurlyInString: variables of a Dockerfile.
      "${A} $B $V ${W:-x} ${NONE:-none} ${A:+set} \\$A $PATH",
      "app.conf",
      "$A",
      "raw",
      "",
    ].join("\n");
    const { text: plain_text, files } = plain(text, { args: { W: "given" }, envOf: () => [["PATH", "/bin"]] });
    assert.equal(lines(plain_text).at(-1), `COPY --chmod=755 ${HEREDOC_DIR}/0/app.conf ${HEREDOC_DIR}/1/raw /etc/`);
    assert.deepEqual([...files.values()], ["a two words 1 given none set $A /bin\n", "$A\n"]);
  });

  test("COPY of a document whose name leads elsewhere is refused", () => {
    for (const name of ["../a", "../../../../etc/cron.d/a", "/etc/a", "..", ".", "a/b", "a".repeat(200)])
      for (const token of [`<<${name}`, `<<'${name}'`, `<<-"${name}"`])
        assert.throws(() => plain(`FROM a\nCOPY ${token} /x\ntext\n${name}\n`), { code: "build_refused" }, token);
  });

  test("hostile documents are read in little time and memory", () => {
    const many = 100_000;
    const short = (text: string, expected?: RegExp): void => {
      const began = process.cpuUsage();
      if (expected) assert.throws(() => plain(text), { code: "build_refused", message: expected });
      else plain(text);
      assert.ok(process.cpuUsage(began).user < 2_000_000, text.slice(0, 60));
    };
    short(`FROM a\n${"RUN <<A\nA\n".repeat(many)}`);
    short(`FROM a\nARG a=${"x".repeat(60_000)}\nCOPY <<A /\n${"$a".repeat(many)}\nA\n`, /grows/);
    const grown = Array.from({ length: 60 }, (_, i) => `ENV a${i + 1}=$a${i}$a${i}`).join("\n");
    short(`FROM a\nENV a0=xxxxxxxx\n${grown}\nCOPY <<A /\n$a60\nA\n`, /grows/);
    for (const part of ["'", '"', "\\", `"'`, "<<", "${a:-"]) short(`FROM a\nRUN <<A ${part.repeat(many)} x\nA\n`);
    short(`FROM a\nCOPY <<A /\n${"${a:-".repeat(10_000)}\nA\n`);
  });

  test("one that does not end is refused with its line", () => {
    assert.throws(() => plain("FROM a\nRUN <<EOF\necho\n"), /<<EOF in line 2 that does not end/);
  });
});
