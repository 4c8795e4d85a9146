import { firstArgument, UsageError, type Verb } from "../verb.ts";

/** Each shell asks `hangar __complete` for the words that may come next, so names are always live. */
const SCRIPTS: Record<string, string> = {
  bash: `_hangar() { local IFS=$'\\n'; COMPREPLY=($(hangar __complete -- "\${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null)); }
complete -F _hangar hangar`,
  zsh: `#compdef hangar
_hangar() { local -a found; found=("\${(@f)$(hangar __complete -- "\${words[@]:1:$((CURRENT-1))}" 2>/dev/null)}"); compadd -- $found }
compdef _hangar hangar`,
  fish: `complete -c hangar -f -a '(hangar __complete -- (commandline -opc)[2..-1] (commandline -ct) 2>/dev/null)'`,
};

export const completion: Verb = {
  words: "completion",
  summary: "Print the completion script of a shell; it knows commands, options and live names",
  arguments: [["<shell>", "bash, zsh or fish"]],
  examples: ["hangar completion bash > ~/.local/share/bash-completion/completions/hangar"],
  async run(_, input) {
    const shell = firstArgument(input);
    const script = Object.hasOwn(SCRIPTS, shell) ? SCRIPTS[shell] : undefined;
    if (!script)
      throw new UsageError(`there is no completion for ${shell}; there is for ${Object.keys(SCRIPTS).join(", ")}`);
    return { data: { shell, script }, text: script };
  },
};
