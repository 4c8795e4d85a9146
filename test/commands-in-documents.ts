/** The shell commands in a page: each block says which test runs it, or why none does. */
interface CommandBlock {
  page: string;
  line: number;
  /** What stands behind `sh`. */
  mark: string;
}

/** Words that begin a line which somebody would paste into a terminal. */
const PROGRAMS =
  /^(?:\$ |sudo |(?:[A-Z_]+=\S+ )*(?:npx|npm|node|hangar|curl|bash|sh|git|apt|apt-get|docker|systemctl|cd|cp|mkdir|export|echo|cat|aws|psql|kill)\b)/;

/** Fenced blocks of a shell, and lines elsewhere that look like commands: indented, or in a block without a name. */
export function commandBlocks(page: string, text: string): CommandBlock[] {
  let fence: string | undefined;
  return text.split("\n").flatMap((line, at) => {
    const opened = /^ *```(.*)$/.exec(line)?.[1];
    const before = fence;
    if (opened !== undefined) fence = before === undefined ? opened : undefined;
    const mark = markOf(line, before, opened);
    return mark === undefined ? [] : [{ page, line: at + 1, mark }];
  });
}

function markOf(line: string, fence: string | undefined, opened: string | undefined): string | undefined {
  if (opened !== undefined)
    return fence === undefined ? /^(?:sh|bash|shell|console|zsh)\b ?(.*)$/.exec(opened)?.[1] : undefined;
  const may_be = fence === "" || (fence === undefined && /^ {4,}/.test(line));
  return may_be && PROGRAMS.test(line.trim()) ? "" : undefined;
}
