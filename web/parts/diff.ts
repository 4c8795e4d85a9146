/** Two texts line by line: what stayed, went and came. */
export interface DiffLine {
  kind: "same" | "gone" | "new";
  text: string;
}

/** `length(i, j)`: common lines of the suffixes from i and j. */
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

/** Longest common subsequence, plain algorithm: configs have hundreds of lines. */
export function diff(before: string, after: string): DiffLine[] {
  const x = before.split("\n");
  const y = after.split("\n");
  const length = commonEnds(x, y);
  const lines: DiffLine[] = [];
  for (let i = 0, j = 0; i < x.length || j < y.length; ) {
    const removed = x[i];
    const came = y[j];
    if (removed !== undefined && removed === came) {
      lines.push({ kind: "same", text: removed });
      i++;
      j++;
    } else if (came === undefined || (removed !== undefined && length(i + 1, j) >= length(i, j + 1))) {
      lines.push({ kind: "gone", text: removed ?? "" });
      i++;
    } else {
      lines.push({ kind: "new", text: came });
      j++;
    }
  }
  return lines;
}
