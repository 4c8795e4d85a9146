/** A query with what could come next below it: metric names, and label names inside braces. */
import type { VNode } from "preact";
import { useMemo, useRef, useState } from "preact/hooks";
import { div, input, li, span, ul } from "../html.ts";

const FUNCTIONS =
  "rate increase irate delta sum avg min max count topk bottomk quantile histogram_quantile avg_over_time max_over_time min_over_time sum_over_time last_over_time count_over_time label_set label_replace sort_desc abs ceil floor round time absent".split(
    " ",
  );
const SHOWN = 10;

interface Offer {
  text: string;
  kind: string;
}

interface Props {
  value: string;
  onChange: (value: string) => void;
  onRun: (value: string) => void;
  names: readonly string[];
  labels: readonly string[];
}

/** Completions for the word before the cursor. */
function offers({ value, names, labels }: Props, cursor: number): { word: string; found: Offer[] } {
  const before = value.slice(0, cursor);
  const word = /[a-zA-Z_:][\w:]*$/.exec(before)?.[0] ?? "";
  const inBraces =
    before.lastIndexOf("{") > before.lastIndexOf("}") || /\b(by|without|on|ignoring)\s*\([^)]*$/.test(before);
  const all: Offer[] = inBraces
    ? labels.map((text) => ({ text, kind: "label" }))
    : [...names.map((text) => ({ text, kind: "metric" })), ...FUNCTIONS.map((text) => ({ text, kind: "function" }))];
  if (word === "") return { word, found: [] };
  const low = word.toLowerCase();
  const fits = all.filter(({ text }) => text.toLowerCase().includes(low) && text !== word);
  const rank = ({ text }: Offer): number => (text.toLowerCase().startsWith(low) ? 0 : 1);
  return { word, found: fits.sort((x, y) => rank(x) - rank(y)).slice(0, SHOWN) };
}

/** The current text of the input: fast typing is ahead of rendering. */
const textOf = (box: { current: HTMLInputElement | null }): string => box.current?.value ?? "";

export function QueryBox(props: Props): VNode {
  const { value, onChange, onRun } = props;
  const box = useRef<HTMLInputElement>(null);
  const [cursor, setCursor] = useState(value.length);
  const [open, setOpen] = useState(false);
  const [at, setAt] = useState(0);
  const { word, found } = useMemo(() => offers(props, cursor), [value, cursor, props.names, props.labels]);
  const shown = open && found.length > 0;
  const take = ({ text, kind }: Offer): void => {
    const end = kind === "function" ? `${text}(` : text;
    const next = `${value.slice(0, cursor - word.length)}${end}`;
    onChange(`${next}${value.slice(cursor)}`);
    setOpen(false);
    // After the new text is rendered.
    requestAnimationFrame(() => {
      box.current?.focus();
      box.current?.setSelectionRange(next.length, next.length);
      setCursor(next.length);
    });
  };
  const whileOpen: Record<string, () => void> = {
    ArrowDown: () => setAt((n) => Math.min(found.length - 1, n + 1)),
    ArrowUp: () => setAt((n) => Math.max(0, n - 1)),
    Tab: () => found[at] && take(found[at]),
    Enter: () => found[at] && take(found[at]),
    Escape: () => setOpen(false),
  };
  const onKeyDown = (event: KeyboardEvent): void => {
    const act = shown ? whileOpen[event.key] : event.key === "Enter" ? () => onRun(textOf(box)) : undefined;
    if (!act) return;
    event.preventDefault();
    act();
  };
  return div(
    { class: "query-box" },
    input({
      ref: box,
      type: "text",
      class: "code",
      autocomplete: "off",
      role: "combobox",
      "aria-label": "Query",
      "aria-expanded": shown,
      "aria-controls": "offers",
      "aria-autocomplete": "list",
      "aria-activedescendant": shown ? `offer-${at}` : undefined,
      placeholder: "sum by (app) (rate(svc_instance_cpu[1m]))",
      spellcheck: false,
      value,
      onInput: (event) => {
        onChange(event.currentTarget.value);
        setCursor(event.currentTarget.selectionStart ?? 0);
        setOpen(true);
        setAt(0);
      },
      onKeyDown,
      onBlur: () => setTimeout(() => setOpen(false), 150),
    }),
    shown
      ? ul(
          { id: "offers", role: "listbox", "aria-label": "Suggestions" },
          ...found.map((offer, index) =>
            li(
              {
                key: offer.text,
                id: `offer-${index}`,
                role: "option",
                "aria-selected": index === at,
                onMouseDown: () => take(offer),
              },
              span(offer.text),
              span({ class: "dim" }, offer.kind),
            ),
          ),
        )
      : null,
  );
}
