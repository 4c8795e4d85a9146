/** Two texts line by line: what stayed, went and came. */
export interface DiffLine {
  kind: "same" | "gone" | "new";
  text: string;
}

/** `length(i, j)`: how many lines the ends from line i and line j have in common, in order. */
function commonEnds(x: readonly string[], y: readonly string[]): (i: number, j: number) => number {
  const width = y.length + 1;
  const lengths = new Uint32Array((x.length + 1) * width);
  const length = (i: number, j: number): number => lengths[i * width + j] ?? 0;
  for (let i = x.length - 1; i >= 0; i--) {
    for (let j = y.length - 1; j >= 0; j--) {
      lengths[i * width + j] = x[i] === y[j] ? length(i + 1, j + 1) + 1 : Math.max(length(i + 1, j), length(i, j + 1));
    }
  }
  return length;
}

/** By the longest common lines, in the plain way: configs have hundreds of lines, not millions. */
export function diff(before: string, after: string): DiffLine[] {
  const x = before.split("\n");
  const y = after.split("\n");
  const length = commonEnds(x, y);
  const lines: DiffLine[] = [];
  for (let i = 0, j = 0; i < x.length || j < y.length; ) {
    const gone = x[i];
    const came = y[j];
    if (gone !== undefined && gone === came) {
      lines.push({ kind: "same", text: gone });
      i++;
      j++;
    } else if (came === undefined || (gone !== undefined && length(i + 1, j) >= length(i, j + 1))) {
      lines.push({ kind: "gone", text: gone ?? "" });
      i++;
    } else {
      lines.push({ kind: "new", text: came });
      j++;
    }
  }
  return lines;
}
