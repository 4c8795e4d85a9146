/**
 * Writes the here-documents of a Dockerfile as instructions without them, which every version of buildah reads (those
 * before 1.33 know none): `RUN <<EOF` as a script in its arguments, `COPY <<EOF` as a file of the context.
 */
import { fail } from "#core/errors.ts";
import { type Heredoc, type Instruction, readInstructions, wordsOf } from "./instructions.ts";
import { assignments, Variables } from "./variables.ts";

/** Each may grow to 64 KiB. */
const DOCUMENTS = 64;

export const HEREDOC_DIR = ".hangar-heredocs";

export interface PlainDockerfile {
  text: string;
  /** Files to be added to the context, by their path in it. */
  files: Map<string, string>;
}

interface Source {
  args: Readonly<Record<string, string>>;
  /** The environment of a base image. */
  envOf(image: string): Iterable<readonly [string, string]>;
}

export function withoutHeredocs(text: string, source: Source): PlainDockerfile {
  const read = readInstructions(text);
  if (read.every(({ heredocs }) => heredocs.length === 0)) return { text, files: new Map() };
  const reader = new StageReader(source);
  const files = new Map<string, string>();
  const lines = read.flatMap((one) => {
    reader.read(one);
    if (one.heredocs.length === 0) return one.lines;
    if (one.word === "RUN") return [runLine(one, reader.shell)];
    return [copyLine(one, files, reader.variables)];
  });
  return { text: `${lines.join("\n")}\n`, files };
}

const SHELL = ["/bin/sh", "-c"];

/** State of the current stage after the instructions so far. */
class StageReader {
  shell: readonly string[] = SHELL;
  variables = new Variables();
  readonly #source: Source;
  /** Arguments before the first stage. */
  readonly #global = new Variables();
  readonly #stages = new Map<string, { env: Variables; shell: readonly string[] }>();
  #env = new Variables();
  #stage: { env: Variables; shell: readonly string[] } | undefined;

  constructor(source: Source) {
    this.#source = source;
  }

  read({ word, rest }: Instruction): void {
    const words = wordsOf(rest);
    if (word === "FROM") this.#from(words.filter((one) => !one.startsWith("--")));
    else if (word === "ARG") this.#arg(words);
    else if (word === "SHELL") this.#setShell(rest);
    else if (word === "ENV")
      for (const [name, value] of assignments(rest, words)) {
        const expanded = this.variables.expand(value);
        for (const one of [this.variables, this.#env]) one.set(name, expanded);
      }
  }

  #from([image = "", , name]: readonly string[]): void {
    const from = this.#global.expand(image);
    const known = this.#stages.get(from.toLowerCase());
    this.#env = new Variables(known ? known.env.entries() : this.#source.envOf(from));
    this.variables = new Variables(this.#env.entries());
    this.shell = known?.shell ?? SHELL;
    const stage = { env: this.#env, shell: this.shell };
    for (const key of [name?.toLowerCase(), String(this.#stages.size)]) if (key) this.#stages.set(key, stage);
    this.#stage = stage;
  }

  #arg(words: readonly string[]): void {
    for (const word of words) {
      const [[name, fallback] = [word, undefined]] = assignments(word, [word]);
      const global = this.#stage ? this.#global.get(name) : undefined;
      const value = this.#source.args[name] ?? (fallback === undefined ? global : this.variables.expand(fallback));
      if (value === undefined) continue;
      if (this.#env.get(name) === undefined) this.variables.set(name, value);
      if (!this.#stage) this.#global.set(name, value);
    }
  }

  #setShell(rest: string): void {
    try {
      this.shell = JSON.parse(rest) as string[];
      if (this.#stage) this.#stage.shell = this.shell;
    } catch {
      // Buildah reports the error.
    }
  }
}

function runLine({ rest, heredocs }: Instruction, shell: readonly string[]): string {
  const [flags, command] = splitFlags(rest);
  const [only] = heredocs;
  const script =
    only && command === only.redirection ? ownScript(only) : `${command}\n${heredocs.map(({ raw }) => raw).join("")}`;
  return `RUN ${flags}${JSON.stringify([...shell, script])}`;
}

/** A document with a shebang is a program; its delimiter is a line that it does not contain. */
function ownScript({ body }: Heredoc): string {
  if (!body.startsWith("#!")) return body;
  let end = "HANGAR_END";
  while (body.includes(end)) end += "_";
  const file = "/tmp/.hangar-heredoc";
  return `cat > ${file} <<'${end}'\n${body}${end}\nchmod 755 ${file} && ${file}; code=$?; rm -f ${file}; exit $code`;
}

/** The platform writes a file of this name, so it must not be a path. */
const FILE_NAME = /^\w[\w.+-]{0,127}$/;

function copyLine({ word, rest, heredocs }: Instruction, files: Map<string, string>, variables: Variables): string {
  const left = [...heredocs];
  const words = wordsOf(rest).map((one) => {
    const heredoc = left[0]?.redirection === one ? left.shift() : undefined;
    if (!heredoc) return one;
    if (!FILE_NAME.test(heredoc.name))
      fail(
        "build_refused",
        `the Dockerfile copies a here-document ${heredoc.redirection}, whose name is no file name`,
        {
          hint: "name it with letters, digits and . _ + -, as in COPY <<app.conf /etc/",
        },
      );
    const path = `${HEREDOC_DIR}/${files.size}/${heredoc.name}`;
    if (files.size === DOCUMENTS) fail("build_refused", `the Dockerfile copies more than ${DOCUMENTS} here-documents`);
    files.set(path, heredoc.quoted ? heredoc.body : variables.expand(heredoc.body));
    return path;
  });
  return `${word} ${words.join(" ")}`;
}

function splitFlags(rest: string): [string, string] {
  const [flags = ""] = /^(?:--\S+\s+)*/.exec(rest) ?? [];
  return [flags, rest.slice(flags.length).trim()];
}
