/** Small controls that several pages have. */
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { button, div, h, input } from "../html.ts";
import { Field } from "./basics.ts";

/** A line of text with its name. */
export function textField(name: string, value: string, change: (value: string) => void, more: object = {}): VNode {
  return h(Field, {
    name,
    children: (id) =>
      input({
        id,
        type: "text",
        autocomplete: "off",
        value,
        onInput: (event) => change(event.currentTarget.value),
        ...more,
      }),
  });
}

/** One of several, each a button; what stands beside them comes after. */
export function choices<T>(
  group: { class: "chips" | "filters"; label: string },
  all: readonly (readonly [name: string, value: T])[],
  now: T,
  choose: (value: T) => void,
  ...more: ComponentChildren[]
): VNode {
  return div(
    { class: group.class, role: "group", "aria-label": group.label },
    ...all.map(([name, value]) =>
      button(
        { type: "button", class: "chip", key: name, "aria-pressed": value === now, onClick: () => choose(value) },
        name,
      ),
    ),
    ...more,
  );
}

/** Choices that are called what they are. */
export const named = <T extends string>(values: readonly T[]): [string, T][] => values.map((value) => [value, value]);

/** Time range charts look, in seconds. */
export const SPANS = [
  ["15 min", 900],
  ["1 h", 3600],
  ["6 h", 21_600],
  ["24 h", 86_400],
] as const satisfies (readonly [string, number])[];

/** A number that goes up every so often while somebody looks: a key for what is to be asked again. */
export function useRounds(every_ms: number): number {
  const [round, setRound] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setRound((n) => n + 1), every_ms);
    return () => clearInterval(timer);
  }, []);
  return round;
}
