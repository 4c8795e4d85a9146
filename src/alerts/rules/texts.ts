/** Expands the templates of a rule's labels and annotations. */
import { messageOf } from "#core/assert.ts";
import { expandTemplate } from "../template/evaluate.ts";
import type { Surroundings } from "../template/functions.ts";
import { type Node, parseTemplate } from "../template/parse.ts";
import { Struct, type Value } from "../template/values.ts";
import type { LabelMap, QueryFunction, Sample } from "./types.ts";

export interface External {
  external_labels: LabelMap;
  external_url: string;
}

const parsed = new Map<string, Node[]>();
const MOST_PARSED = 5000;

function treeOf(text: string): Node[] {
  const known = parsed.get(text);
  if (known) return known;
  if (parsed.size >= MOST_PARSED) parsed.clear();
  const tree = parseTemplate(text);
  parsed.set(text, tree);
  return tree;
}

const mapOf = (labels: LabelMap): ReadonlyMap<string, Value> => new Map(Object.entries(labels));

const sampleValue = ({ labels, value }: Sample): Value =>
  new Struct("*template.sample", { Labels: mapOf(labels), Value: value });

/** Expands texts for one sample of a rule's expression. An error becomes the text, as in Prometheus. */
export class Expander {
  readonly #external: External;
  readonly #surroundings: Surroundings;

  constructor(external: External, query: QueryFunction, at_ms: number) {
    this.#external = external;
    this.#surroundings = {
      external_url: external.external_url,
      query: async (expr) => (await query(expr, at_ms)).map(sampleValue),
    };
  }

  async expand(texts: LabelMap, { labels, value }: Sample): Promise<Record<string, string>> {
    const expanded: Record<string, string> = {};
    for (const [name, text] of Object.entries(texts))
      expanded[name] = text.includes("{{") ? await this.#one(text, labels, value) : text;
    return expanded;
  }

  async #one(text: string, labels: LabelMap, value: number): Promise<string> {
    const { external_labels, external_url } = this.#external;
    const fields = {
      Labels: mapOf(labels),
      ExternalLabels: mapOf(external_labels),
      ExternalURL: external_url,
      Value: value,
    };
    const variables = {
      $labels: fields.Labels,
      $externalLabels: fields.ExternalLabels,
      $externalURL: external_url,
      $value: value,
    };
    try {
      return await expandTemplate(treeOf(text), new Struct("struct", fields), variables, this.#surroundings);
    } catch (thrown) {
      return `<error expanding template: ${messageOf(thrown)}>`;
    }
  }
}
