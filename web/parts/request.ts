/** A request as it can be repeated elsewhere: `curl`, the command, TypeScript. */
import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { section } from "../html.ts";
import { block } from "./basics.ts";
import { choices, named } from "./controls.ts";

export interface RequestTexts {
  curl: string;
  hangar: string;
  TypeScript: string;
}

const VIEWS = ["hangar", "curl", "TypeScript"] as const;

export const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** A route with its parameters and body, in each language. */
export function requestTexts(
  route: string,
  { params, body, hangar }: { params: Record<string, string>; body?: object; hangar: string },
): RequestTexts {
  const [method = "", pattern = ""] = route.split(" ");
  const path = pattern.replaceAll(/:(\w+)/g, (_, name: string) => encodeURIComponent(params[name] ?? ""));
  const json = body && JSON.stringify(body);
  const sent = json ? ` \\\n  -H 'content-type: application/json' \\\n  -d ${quoted(json)}` : "";
  return {
    curl: `curl -X ${method} ${location.origin}${path} \\\n  -H "Authorization: Bearer $(hangar auth token)"${sent}`,
    hangar,
    TypeScript: `await client.call(${JSON.stringify(route)}, {\n  params: ${JSON.stringify(params)},${json ? `\n  body: ${json},` : ""}\n});`,
  };
}

export function RequestView({ texts }: { texts: RequestTexts }): VNode {
  const [view, setView] = useState<(typeof VIEWS)[number]>("hangar");
  return section(
    { class: "request", "aria-label": "The same elsewhere" },
    choices({ class: "chips", label: "Show it as" }, named(VIEWS), view, setView),
    block(texts[view]),
  );
}
