/**
 * Errors of a query. The kinds are those of the Prometheus HTTP API, so that the API only has to look up a status;
 * any other exception thrown from this folder is a bug.
 */
export type QueryErrorKind = "bad_data" | "execution" | "timeout" | "canceled";

export interface Place {
  /** From 1, as editors count. */
  line: number;
  column: number;
}

export class QueryError extends Error {
  override readonly name = "QueryError";
  readonly kind: QueryErrorKind;
  readonly place: Place | undefined;

  constructor(kind: QueryErrorKind, message: string, place?: Place) {
    super(message);
    this.kind = kind;
    this.place = place;
  }

  /** Sent from the worker besides the message. */
  get details(): { kind: QueryErrorKind; place?: Place } {
    return { kind: this.kind, ...(this.place ? { place: this.place } : {}) };
  }
}

/** Line and column of an offset in the query text. */
export function placeOf(text: string, offset: number): Place {
  const before = text.slice(0, offset);
  const line = before.split("\n").length;
  return { line, column: offset - before.lastIndexOf("\n") };
}

const SNIPPET_CHARS = 60;

/** A parse error that shows the line and points at the place in it. */
export function parseError(text: string, offset: number, message: string): QueryError {
  const at = Math.min(Math.max(offset, 0), text.length);
  const place = placeOf(text, at);
  const line = text.split("\n")[place.line - 1] ?? "";
  const from = Math.max(0, place.column - 1 - SNIPPET_CHARS / 2);
  const snippet = line.slice(from, from + SNIPPET_CHARS).replaceAll("\t", " ");
  const caret = `${" ".repeat(place.column - 1 - from)}^`;
  return new QueryError(
    "bad_data",
    `${place.line}:${place.column}: parse error: ${message}\n${snippet}\n${caret}`,
    place,
  );
}

/**
 * Depth is limited where queries are read, but templates can stack what is shallow in the text. Running out of stack is
 * therefore an answer to the query and no fault of the program.
 */
export function refuseTooDeep<T>(run: () => T): T {
  try {
    return run();
  } catch (error) {
    if (error instanceof RangeError) throw new QueryError("bad_data", "the query is nested too deeply or too large");
    throw error;
  }
}

export function executionError(message: string): QueryError {
  return new QueryError("execution", message);
}
