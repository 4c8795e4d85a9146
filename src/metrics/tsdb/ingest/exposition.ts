import { isUtf8 } from "node:buffer";
import type { Labels } from "../../source.ts";
import { ExpositionLine, LineProblem } from "./exposition-line.ts";
import type { Importer, ImportResult } from "./importer.ts";
import { parseNumber } from "./number-text.ts";

const NEWLINE = 0x0a;
const RETURN = 0x0d;
const SPACE = 0x20;
const TAB = 0x09;
const HASH = 0x23;
const BRACE = 0x7b;

export interface ExpositionOptions {
  /** `protobuf` is no text: `metric-families.ts` reads it. */
  format: "prometheus" | "openmetrics" | "protobuf";
  /** For samples that carry none. */
  timestamp_ms: number;
  /** Labels of the platform: they win over the same names in the text. */
  labels?: Labels;
  /** Names the sender: series it had the last time and has no more are marked stale. */
  target?: string;
  /** Told about each `# TYPE`, `# HELP` and `# UNIT`. */
  onMetadata?(metric: string, kind: "type" | "help" | "unit", text: string): void;
}

const END_OF_TEXT = "# EOF";

const scratch = new Float64Array(1);
const halves = new Uint32Array(scratch.buffer);

/**
 * Reads exposition text and stores it. A line that is wrong is reported with its place and costs only itself.
 * A series seen before is found by its raw bytes, without looking at its labels.
 */
export function importExposition(importer: Importer, bytes: Uint8Array, options: ExpositionOptions): ImportResult {
  return new ExpositionReader(importer, bytes, options).read();
}

class ExpositionReader {
  readonly #importer: Importer;
  readonly #bytes: Uint8Array;
  readonly #view: DataView;
  readonly #options: ExpositionOptions;
  readonly #added: Labels;
  readonly #scope: number;
  #line = 0;
  #entry = -1;

  constructor(importer: Importer, bytes: Uint8Array, options: ExpositionOptions) {
    this.#importer = importer;
    this.#bytes = bytes;
    this.#view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
    this.#options = options;
    this.#added = options.labels ?? [];
    this.#scope = importer.scopeOf(this.#added);
  }

  read(): ImportResult {
    this.#importer.begin();
    for (let start = 0; start < this.#bytes.length; ) {
      this.#line++;
      const newline = this.#bytes.indexOf(NEWLINE, start);
      const next = newline < 0 ? this.#bytes.length : newline;
      if (!this.#readLine(start, this.#bytes[next - 1] === RETURN ? next - 1 : next)) break;
      start = next + 1;
    }
    if (this.#options.target !== undefined) {
      this.#importer.markMissing(this.#options.target, this.#options.timestamp_ms);
    }
    return this.#importer.end();
  }

  /** False at the end of an OpenMetrics text. */
  #readLine(start: number, end: number): boolean {
    let at = start;
    while (at < end && isBlank(this.#bytes[at])) at++;
    if (at >= end) return true;
    if (this.#bytes[at] === HASH) return this.#readComment(at, end);
    try {
      this.#readSample(at, end);
    } catch (thrown) {
      if (thrown instanceof LineProblem) {
        this.#importer.report({ line: this.#line, column: thrown.at - start + 1, problem: thrown.message });
      } else this.#importer.reportLabels(thrown, { line: this.#line, column: at - start + 1 });
    }
    return true;
  }

  #readComment(at: number, end: number): boolean {
    const wanted = this.#options.onMetadata !== undefined;
    const last = this.#options.format === "openmetrics" && end - at === END_OF_TEXT.length;
    if (!wanted && !last) return true;
    const text = Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset + at, end - at).toString("utf8");
    if (last && text === END_OF_TEXT) return false;
    const parts = /^#[ \t]+(TYPE|HELP|UNIT)[ \t]+(\S+)(?:[ \t]+(.*))?$/.exec(text);
    const [, kind, metric, rest = ""] = parts ?? [];
    if (metric === undefined) return true;
    if (kind === "TYPE") this.#options.onMetadata?.(metric, "type", rest);
    else if (kind === "HELP") this.#options.onMetadata?.(metric, "help", rest);
    else this.#options.onMetadata?.(metric, "unit", rest);
    return true;
  }

  #readSample(start: number, end: number): void {
    const expected = this.#expected(start, end);
    const line = new ExpositionLine(this.#bytes, expected < 0 ? start : expected, end);
    if (expected < 0) line.skipKey();
    const behind = line.at;
    line.skipBlanks();
    const from = line.at;
    line.skipWord();
    const value = parseNumber(this.#bytes, from, line.at);
    if (value === undefined) throw new LineProblem(from === line.at ? "the value is missing" : "not a number", from);
    const time = this.#readTime(line);
    // Only now, so that a line that is wrong makes no series.
    if (expected < 0) this.#entry = this.#findSeries(start, behind);
    if (this.#entry < 0) {
      this.#importer.refuse();
      return;
    }
    scratch[0] = value;
    this.#importer.push(this.#importer.cache.ref(this.#entry), time, halves[0] as number, halves[1] as number);
  }

  #readTime(line: ExpositionLine): number {
    line.skipBlanks();
    if (line.done || line.byte === HASH) return this.#options.timestamp_ms;
    const from = line.at;
    line.skipWord();
    const time = parseNumber(this.#bytes, from, line.at);
    if (time === undefined) throw new LineProblem("not a timestamp", from);
    line.skipBlanks();
    if (!line.done && line.byte !== HASH) throw new LineProblem("text behind the timestamp", line.at);
    return this.#options.format === "openmetrics" ? Math.round(time * 1000) : time;
  }

  /** The end of the key when the line begins with the series expected here, or -1. */
  #expected(start: number, end: number): number {
    const { cache } = this.#importer;
    const entry = cache.expected(this.#entry);
    if (entry < 0) return -1;
    const behind = start + cache.length(entry);
    // A key that goes on, `a` before `a{…}` or `a_total`, is another key.
    if (behind >= end || !isBlank(this.#bytes[behind]) || !cache.isAt(entry, this.#scope, this.#view, start)) return -1;
    let at = behind;
    while (isBlank(this.#bytes[at])) at++;
    if (this.#bytes[at] === BRACE) return -1;
    this.#entry = entry;
    return behind;
  }

  /** The cache entry of the series named between two places; negative when it is not let in. */
  #findSeries(start: number, end: number): number {
    const { cache } = this.#importer;
    const before = this.#entry;
    this.#entry = -1;
    const known = cache.find(this.#scope, this.#view, start, end, before);
    if (known >= 0) return known;
    const key = Buffer.from(this.#bytes.buffer, this.#bytes.byteOffset + start, end - start);
    if (!isUtf8(key)) throw new LineProblem("the text is not UTF-8", start);
    const pairs = new ExpositionLine(this.#bytes, start, end).readKey();
    const ref = this.#importer.series(pairs, this.#added);
    return ref === undefined ? -1 : cache.add(this.#scope, this.#view, start, end, ref, before);
  }
}

function isBlank(byte: number | undefined): boolean {
  return byte === SPACE || byte === TAB;
}
