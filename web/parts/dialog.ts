import type { ComponentChildren, VNode } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { Cell, useCell } from "../cell.ts";
import { button, dialog as dialogElement, div, form, h, h2, p } from "../html.ts";

/** The native dialog: it traps the focus, and Escape closes it. */
export function Dialog({
  name,
  onClose,
  children,
  class: style = "",
}: {
  name: string;
  onClose: () => void;
  children?: ComponentChildren;
  class?: string;
}): VNode {
  const element = useRef<HTMLDialogElement>(null);
  // Before the next key event, which belongs to the dialog.
  useLayoutEffect(() => {
    const dialog = element.current;
    dialog?.showModal();
    return () => dialog?.close();
  }, []);
  return dialogElement(
    {
      ref: element,
      class: style,
      "aria-label": name,
      onCancel: onClose,
      onClick: (event: MouseEvent) => {
        if (event.target === element.current) onClose();
      },
    },
    children,
  );
}

interface Question {
  title: string;
  text: ComponentChildren;
  yes: string;
  danger: boolean;
  answer: (yes: boolean) => void;
}

const question = new Cell<Question | undefined>(undefined);

/** Confirms an irreversible action. */
export function confirmed(title: string, text: ComponentChildren, yes: string, danger = true): Promise<boolean> {
  return new Promise((resolve) => {
    const answer = (value: boolean): void => {
      question.set(undefined);
      resolve(value);
    };
    question.set({ title, text, yes, danger, answer });
  });
}

export function Questions(): VNode | null {
  const current = useCell(question);
  if (!current) return null;
  const submit = (event: Event): void => {
    event.preventDefault();
    current.answer(true);
  };
  return h(
    Dialog,
    { name: current.title, onClose: () => current.answer(false) },
    form(
      { onSubmit: submit },
      h2(current.title),
      typeof current.text === "string" ? p(current.text) : current.text,
      div(
        { class: "actions end" },
        button({ type: "button", onClick: () => current.answer(false) }, "Cancel"),
        button({ type: "submit", class: current.danger ? "danger" : "primary" }, current.yes),
      ),
    ),
  );
}
