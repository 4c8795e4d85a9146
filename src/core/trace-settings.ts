/** Settings of the traces that the edge proxy exports. */
import { type Given, SettingsError } from "./setting-values.ts";

export const TRACE_SETTINGS = {
  traces_url: {
    default: "",
    words:
      "URL of a receiver of traces (OTLP over HTTP), such as `http://127.0.0.1:4318`, to which the edge proxy exports the " +
      "spans of requests; none by default: requests are not traced, and trace headers pass unchanged.",
  },
  traces_headers: {
    default: "",
    words: "Headers for that receiver, `name=value`, comma-separated; prefer the environment variable.",
  },
  traces_ratio: {
    default: "0.1",
    words:
      "Part of the new traces that is sampled, 0 to 1. A client's own decision is respected; failed and slow requests are " +
      "always exported.",
  },
} as const satisfies Record<string, { default: string; words: string }>;

export interface TracesSetting {
  url: URL;
  headers: Record<string, string>;
  ratio: number;
}

const HEADER = /^\s*([!#$%&'*+.^_`|~0-9A-Za-z-]{1,100})\s*=\s*([\t\x20-\x7e]*?)\s*$/;

export function tracesSetting(given: (name: keyof typeof TRACE_SETTINGS) => Given): TracesSetting | undefined {
  const { value, from } = given("traces_url");
  const ratio = given("traces_ratio");
  if (!/^(?:0|1|0?\.\d{1,9}|1\.0{1,9})$/.test(ratio.value))
    throw new SettingsError(`${ratio.from}: "${ratio.value}" is not a part such as 0.1: 0 to 1`);
  const headers = headersOf(given("traces_headers"));
  if (value === "") return undefined;
  const url = URL.canParse(value) ? new URL(value) : undefined;
  if (!url || !/^https?:$/.test(url.protocol) || url.username !== "" || url.password !== "")
    throw new SettingsError(`${from}: not a URL such as http://127.0.0.1:4318; a password belongs in traces_headers`);
  if (url.pathname === "/") url.pathname = "/v1/traces";
  return { url, headers, ratio: Number(ratio.value) };
}

/** As OTEL_EXPORTER_OTLP_HEADERS. */
function headersOf({ value, from }: Given): Record<string, string> {
  const parts = value.split(",").filter((part) => part.trim() !== "");
  return Object.fromEntries(
    parts.map((part, at): [string, string] => {
      const [, name, content = ""] = HEADER.exec(part) ?? [];
      // Its value may be a secret, so it is not shown.
      if (name === undefined) throw new SettingsError(`${from}: header ${at + 1} is not name=value`);
      return [name.toLowerCase(), content];
    }),
  );
}
