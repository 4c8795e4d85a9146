/** A query in the editor, which is loaded with the first one; until then, and without it, in a plain field. */
import type { VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { div, textarea } from "../html.ts";
import type { Editor } from "./query-editor.ts";

interface Props {
  name: string;
  value: string;
  /** Raised when the value comes from elsewhere: what is typed comes back later than more is typed. */
  revision: number;
  onChange: (value: string) => void;
  onRun: (value: string) => void;
}

export function QueryBox({ name, value, revision, onChange, onRun }: Props): VNode {
  const holder = useRef<HTMLDivElement>(null);
  const editor = useRef<Editor>(null);
  const [ready, setReady] = useState(false);
  // The editor is made once and calls what was given last.
  const latest = useRef({ onChange, onRun });
  latest.current = { onChange, onRun };
  const typed = useRef(value);
  typed.current = value;
  useEffect(() => {
    let over = false;
    const begin = async (): Promise<void> => {
      const { mount } = await import("./query-editor.ts");
      if (over || !holder.current) return;
      editor.current = mount(holder.current, {
        value: typed.current,
        name,
        onChange: (text) => latest.current.onChange(text),
        onRun: (text) => latest.current.onRun(text),
      });
      setReady(true);
    };
    // Without it the plain field stays.
    begin().catch(() => {});
    return () => {
      over = true;
      editor.current?.destroy();
    };
  }, []);
  useEffect(() => editor.current?.set(typed.current), [revision]);
  return div(
    { class: "query-box" },
    div({ class: "editor", ref: holder, hidden: !ready }),
    ready
      ? null
      : textarea({
          class: "code",
          "aria-label": name,
          rows: 1,
          spellcheck: false,
          value,
          onInput: (event) => onChange(event.currentTarget.value),
          onKeyDown: (event) => {
            if (event.key !== "Enter" || event.shiftKey) return;
            event.preventDefault();
            onRun(event.currentTarget.value);
          },
        }),
  );
}
