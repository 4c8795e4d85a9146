import { complete } from "../complete.ts";
import { type Context, firstArgument, UsageError, type Verb } from "../verb.ts";

/** Maps the typed line, with " -" when an option is begun, to its completions. */
type Table = readonly (readonly [typed: string, words: readonly string[]])[];

/** A word quoted for the shell. */
const quoted = (text: string): string => `'${text.replaceAll("'", "")}'`;

/**
 * Completion scripts. Commands and options are in the script, so that the shell starts no program to complete them. For
 * everything else, such as names of machines, the script calls `hangar __complete`.
 */
const SCRIPTS: Record<string, (table: Table) => string> = {
  bash: (table) => `_hangar() {
  local IFS=$' \\n' words begun="\${COMP_WORDS[COMP_CWORD]}" typed="\${COMP_WORDS[*]:1:COMP_CWORD-1}"
  case $begun in -*) typed="$typed -" ;; esac
  case $typed in
${table.map(([typed, words]) => `    ${quoted(typed)}) words=${quoted(words.join(" "))} ;;`).join("\n")}
    *) IFS=$'\\n'; COMPREPLY=($(hangar __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)); return ;;
  esac
  COMPREPLY=($(compgen -W "$words" -- "$begun"))
}
complete -F _hangar hangar`,
  zsh: (table) => `#compdef hangar
_hangar() {
  local begun="\${words[CURRENT]}" typed="\${(j: :)words[2,CURRENT-1]}"
  local -a found
  [[ $begun == -* ]] && typed="$typed -"
  case $typed in
${table.map(([typed, words]) => `    ${quoted(typed)}) found=(${words.join(" ")}) ;;`).join("\n")}
    *) found=("\${(@f)$(hangar __complete -- "\${(@)words[2,CURRENT]}" 2>/dev/null)}") ;;
  esac
  compadd -- $found
}
compdef _hangar hangar`,
  fish: (table) => `function __hangar_complete
  set -l before (commandline -opc)[2..-1]
  set -l begun (commandline -ct)
  set -l typed (string join ' ' -- $before)
  string match -q -- '-*' "$begun"; and set typed "$typed -"
  switch "$typed"
${table.map(([typed, words]) => `    case ${quoted(typed)}\n      printf '%s\\n' ${words.join(" ")}`).join("\n")}
    case '*'
      hangar __complete -- $before "$begun" 2>/dev/null
  end
end
complete -c hangar -f -a '(__hangar_complete)'`,
};

/** The static completions: commands, their options, and commands without further arguments. */
async function tableOf(context: Context, verbs: readonly Verb[]): Promise<Table> {
  const nouns = new Set(verbs.flatMap(({ words }) => (words.includes(" ") ? [words.split(" ")[0] ?? ""] : [])));
  const row = async (typed: readonly string[], begun: string): Promise<Table[number]> => [
    [...typed, ...(begun === "-" ? [typed.length > 0 ? "-" : " -"] : [])].join(" "),
    await complete(context, verbs, [...typed, begun]),
  ];
  const ended = verbs.filter(({ completes, words }) => completes === undefined && !nouns.has(words));
  return await Promise.all([
    row([], ""),
    row([], "-"),
    ...[...nouns].map((noun) => row([noun], "")),
    ...ended.map(({ words }) => row(words.split(" "), "")),
    ...verbs.map(({ words }) => row(words.split(" "), "-")),
  ]);
}

export const completion: Verb = {
  words: "completion",
  summary: "Print a shell completion script: commands, options and live names",
  arguments: [["<shell>", "bash, zsh or fish"]],
  examples: ["hangar completion bash > ~/.local/share/bash-completion/completions/hangar"],
  async run(context, input) {
    const shell = firstArgument(input);
    const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
    if (!script) throw new UsageError(`no completion for ${shell}; supported: ${Object.keys(SCRIPTS).join(", ")}`);
    const text = script(await tableOf(context, await context.allVerbs()));
    return { data: { shell, script: text }, text };
  },
};
