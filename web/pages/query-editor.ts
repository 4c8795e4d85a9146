/**
 * The query editor: CodeMirror with Prometheus' own language. A module of the explorer alone, loaded when that opens. It
 * lives in a shadow root, where its style sheets are constructed ones, which the content policy allows.
 */
import { acceptCompletion, autocompletion, closeBrackets, completionKeymap } from "@codemirror/autocomplete";
import { defaultKeymap, history, historyKeymap } from "@codemirror/commands";
import { HighlightStyle, syntaxHighlighting } from "@codemirror/language";
import { EditorState, type Extension } from "@codemirror/state";
import { EditorView, keymap, placeholder } from "@codemirror/view";
import { tags } from "@lezer/highlight";
import { PromQLExtension } from "@prometheus-io/codemirror-promql";
import { labelNames, labelValues, seriesOf } from "../prometheus.ts";

interface Wanted {
  value: string;
  name: string;
  onChange: (value: string) => void;
  onRun: (value: string) => void;
}

export interface Editor {
  set(value: string): void;
  destroy(): void;
}

const COLOURS = HighlightStyle.define([
  { tag: tags.keyword, color: "var(--accent)", fontWeight: "600" },
  { tag: [tags.modifier, tags.operatorKeyword], color: "var(--accent)" },
  { tag: [tags.string, tags.regexp], color: "var(--good)" },
  { tag: tags.number, color: "var(--warn)" },
  { tag: tags.labelName, color: "var(--cold)" },
  { tag: tags.comment, color: "var(--dim)" },
]);

const LOOKS = EditorView.theme({
  "&": {
    color: "var(--ink)",
    backgroundColor: "var(--paper)",
    border: "1px solid var(--line-strong)",
    borderRadius: "6px",
  },
  "&.cm-focused": { outline: "2px solid var(--accent)", outlineOffset: "1px" },
  ".cm-content": { font: "13px/1.55 var(--mono)", padding: "7px 4px", caretColor: "var(--ink)" },
  ".cm-cursor": { borderLeftColor: "var(--ink)" },
  ".cm-placeholder": { color: "var(--dim)" },
  ".cm-selectionBackground, &.cm-focused > .cm-scroller > .cm-selectionLayer .cm-selectionBackground": {
    background: "var(--accent-soft)",
  },
  ".cm-tooltip": { color: "var(--ink)", backgroundColor: "var(--paper)", border: "1px solid var(--line-strong)" },
  ".cm-tooltip-autocomplete > ul > li[aria-selected]": { color: "var(--ink)", background: "var(--accent-soft)" },
  ".cm-completionDetail": { color: "var(--dim)" },
});

/** Names and labels as the platform knows them, asked by the same client as everything else. */
function completions(): Extension {
  const quiet = async <T>(asked: Promise<T[]>): Promise<T[]> => await asked.catch(() => []);
  const remote = {
    labelNames: async (metric?: string) => await quiet(labelNames(undefined, metric)),
    labelValues: async (label: string, metric?: string) => await quiet(labelValues(label, undefined, metric)),
    metricNames: async () => await quiet(labelValues("__name__")),
    metricMetadata: async () => ({}),
    series: async (metric: string) => (await quiet(seriesOf(metric))).map((labels) => new Map(Object.entries(labels))),
    flags: async () => ({}),
  };
  // Its linter knows PromQL alone, and MetricsQL would be underlined as wrong: the platform says what it refuses.
  return new PromQLExtension().activateLinter(false).setComplete({ remote }).asExtension();
}

export function mount(holder: HTMLElement, { value, name, onChange, onRun }: Wanted): Editor {
  const root = holder.shadowRoot ?? holder.attachShadow({ mode: "open" });
  const run = {
    key: "Enter",
    run: ({ state }: EditorView) => {
      onRun(state.doc.toString());
      return true;
    },
  };
  const view = new EditorView({
    root,
    parent: root,
    state: EditorState.create({
      doc: value,
      extensions: [
        history(),
        closeBrackets(),
        autocompletion(),
        completions(),
        syntaxHighlighting(COLOURS),
        LOOKS,
        EditorView.lineWrapping,
        EditorView.contentAttributes.of({ "aria-label": name, spellcheck: "false" }),
        placeholder("sum by (app) (rate(svc_instance_cpu[1m]))"),
        // Shift and Enter begins a new line.
        keymap.of([
          { key: "Tab", run: acceptCompletion },
          ...completionKeymap,
          run,
          ...defaultKeymap,
          ...historyKeymap,
        ]),
        EditorView.updateListener.of(({ docChanged, state }) => docChanged && onChange(state.doc.toString())),
      ],
    }),
  });
  return {
    set(text) {
      if (text !== view.state.doc.toString())
        view.dispatch({ changes: { from: 0, to: view.state.doc.length, insert: text } });
    },
    destroy: () => view.destroy(),
  };
}
