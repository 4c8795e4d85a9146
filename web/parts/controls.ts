/** Small controls that several pages have. */
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useState } from "preact/hooks";
import { button, div, h, input } from "../html.ts";
import { Field, useAnswer } from "./basics.ts";

/** A labelled text field. */
export function textField(
  name: string,
  value: string,
  change: (value: string) => void,
  {
    hint,
    error,
    ...more
  }: { hint?: string | undefined; error?: string | undefined; [attribute: string]: unknown } = {},
): VNode {
  return h(Field, {
    name,
    hint,
    error,
    children: (id) =>
      input({
        id,
        type: "text",
        autocomplete: "off",
        value,
        onInput: (event) => change(event.currentTarget.value),
        ...(error ? { "aria-invalid": true, "aria-describedby": `${id}-error` } : {}),
        ...more,
      }),
  });
}

/** A group of toggle buttons, followed by further controls. */
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

/** Choices labelled by their values. */
export const named = <T extends string>(values: readonly T[]): [string, T][] => values.map((value) => [value, value]);

/** Time ranges of charts, in seconds. */
export const SPANS = [
  ["15 min", 900],
  ["1 h", 3600],
  ["6 h", 21_600],
  ["24 h", 86_400],
] as const satisfies (readonly [string, number])[];

/** Incremented periodically while the page is visible, to reload. */
export function useRounds(every_ms: number): number {
  const [round, setRound] = useState(0);
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setRound((n) => n + 1), every_ms);
    return () => clearInterval(timer);
  }, []);
  return round;
}

/** Pause until what other people may have changed is asked for again. */
const SHARED_MS = 3000;

/** Like `useAnswer`, for what no event announces: another person's changes are seen within a few seconds. */
export function useShared<T>(
  ask: (signal: AbortSignal) => Promise<T>,
  keys: readonly unknown[],
): ReturnType<typeof useAnswer<T>> {
  return useAnswer(ask, [...keys, useRounds(SHARED_MS)]);
}
