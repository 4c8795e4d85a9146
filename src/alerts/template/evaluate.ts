/** Expands a parsed template, in bounded steps and length. */
import { ALERT_LIMITS } from "../limits.ts";
import { FUNCTIONS, type Surroundings } from "./functions.ts";
import type { Node, Pipe, Term } from "./parse.ts";
import { isList, isMap, isTrue, Struct, show, typeOf, type Value } from "./values.ts";

interface Scope {
  dot: Value;
  /** From the outermost block to the innermost. */
  variables: Map<string, Value>[];
}

export async function expandTemplate(
  nodes: readonly Node[],
  data: Value,
  variables: Readonly<Record<string, Value>>,
  surroundings: Surroundings,
): Promise<string> {
  const expansion = new Expansion(surroundings);
  const known = new Map<string, Value>([["$", data], ...Object.entries(variables)]);
  await expansion.run(nodes, { dot: data, variables: [known] });
  return expansion.text;
}

class Expansion {
  text = "";
  #steps = 0;
  readonly #surroundings: Surroundings;

  constructor(surroundings: Surroundings) {
    this.#surroundings = surroundings;
  }

  async run(nodes: readonly Node[], scope: Scope): Promise<void> {
    for (const node of nodes) {
      this.#step();
      if (node.kind === "text") this.#write(node.text);
      else if (node.kind === "action") {
        const value = await this.#pipe(node.pipe, scope);
        if (node.pipe.declares.length === 0) this.#write(show(value));
      } else if (node.kind === "range") await this.#range(node, inner(scope));
      else await this.#choice(node, inner(scope));
    }
  }

  async #choice({ kind, pipe, body, otherwise }: Extract<Node, { kind: "if" | "with" }>, scope: Scope): Promise<void> {
    const value = await this.#pipe(pipe, scope);
    if (!isTrue(value)) return await this.run(otherwise, scope);
    await this.run(body, kind === "with" ? { ...scope, dot: value } : scope);
  }

  async #range({ pipe, body, otherwise }: Extract<Node, { kind: "range" }>, scope: Scope): Promise<void> {
    const value = await this.#pipe({ ...pipe, declares: [] }, scope);
    const entries = entriesOf(value);
    if (entries.length === 0) return await this.run(otherwise, scope);
    for (const [key, one] of entries) {
      const each = inner({ ...scope, dot: one });
      const names = pipe.declares.length === 2 ? [key, one] : [one];
      for (const [at, name] of pipe.declares.entries()) each.variables.at(-1)?.set(name, names[at] ?? null);
      await this.run(body, each);
    }
  }

  async #pipe({ declares, assigns, commands }: Pipe, scope: Scope): Promise<Value> {
    let value: Value | undefined;
    for (const command of commands) value = await this.#command(command, scope, value);
    for (const name of declares) set(scope, name, value ?? null, assigns);
    return value ?? null;
  }

  async #command([first, ...rest]: readonly Term[], scope: Scope, piped: Value | undefined): Promise<Value> {
    this.#step();
    if (first?.kind !== "function") {
      if (rest.length > 0 || piped !== undefined) throw new Error("can't give argument to non-function");
      return await this.#term(first as Term, scope);
    }
    const stops = first.name === "and" ? false : first.name === "or" ? true : undefined;
    const args: Value[] = [];
    for (const term of rest) {
      const value = await this.#term(term, scope);
      if (stops !== undefined && isTrue(value) === stops) return value;
      args.push(value);
    }
    if (piped !== undefined) args.push(piped);
    return await this.#call(first.name, args);
  }

  async #call(name: string, args: readonly Value[]): Promise<Value> {
    const work = FUNCTIONS[name];
    if (!work) throw new Error(`function "${name}" is not known here`);
    try {
      return await work(args, this.#surroundings);
    } catch (thrown) {
      throw new Error(`error calling ${name}: ${thrown instanceof Error ? thrown.message : String(thrown)}`, {
        cause: thrown,
      });
    }
  }

  async #term(term: Term, scope: Scope): Promise<Value> {
    switch (term.kind) {
      case "literal":
        return term.value;
      case "dot":
        return scope.dot;
      case "variable":
        return variable(scope, term.name);
      case "function":
        return await this.#call(term.name, []);
      case "pipe":
        return await this.#pipe(term.pipe, inner(scope));
      case "field":
        return term.names.reduce(field, await this.#term(term.of, scope));
    }
  }

  #write(text: string): void {
    this.text += text;
    if (this.text.length > ALERT_LIMITS.template_result_chars)
      throw new Error(
        `the text is longer than ${ALERT_LIMITS.template_result_chars} characters (template_result_chars)`,
      );
  }

  #step(): void {
    if (++this.#steps > ALERT_LIMITS.template_steps)
      throw new Error(`the template takes more than ${ALERT_LIMITS.template_steps} steps (template_steps)`);
  }
}

const inner = (scope: Scope): Scope => ({ ...scope, variables: [...scope.variables, new Map<string, Value>()] });

function variable({ variables }: Scope, name: string): Value {
  const found = variables.findLast((one) => one.has(name));
  if (!found) throw new Error(`undefined variable ${JSON.stringify(name)}`);
  return found.get(name) ?? null;
}

function set({ variables }: Scope, name: string, value: Value, assigns: boolean): void {
  const target = assigns ? variables.findLast((one) => one.has(name)) : variables.at(-1);
  if (!target) throw new Error(`undefined variable ${JSON.stringify(name)}`);
  target.set(name, value);
}

function field(value: Value, name: string): Value {
  if (isMap(value)) return value.get(name) ?? "";
  const found = value instanceof Struct && Object.hasOwn(value.fields, name) ? value.fields[name] : undefined;
  if (found === undefined) throw new Error(`can't evaluate field ${name} in type ${typeOf(value)}`);
  return found;
}

function entriesOf(value: Value): [Value, Value][] {
  if (value === null) return [];
  if (isMap(value)) return [...value].sort(([a], [b]) => (a < b ? -1 : 1));
  if (isList(value)) return value.map((one, at) => [BigInt(at), one]);
  throw new Error(`range can't iterate over ${show(value)}`);
}
