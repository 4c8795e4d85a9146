import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useCell } from "./cell.ts";
import { button, code, div, form, h, h1, input, main, p, span } from "./html.ts";
import { block, Field, problem } from "./parts/basics.ts";
import { farewell, signIn } from "./session.ts";

/** The sign-in page: the token is kept until the tab is closed. */
export function SignIn(): VNode {
  const reason = useCell(farewell);
  const [token, setToken] = useState("");
  const [error, setError] = useState<unknown>();
  const [busy, setBusy] = useState(false);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    setError(undefined);
    await signIn(token).catch((thrown: unknown) => setError(thrown));
    setBusy(false);
  };
  return main(
    { class: "door" },
    h1(span({ class: "mark", "aria-hidden": "true" }), "Hangar"),
    reason ? p({ class: "note" }, reason) : null,
    form(
      { onSubmit: (event) => void submit(event) },
      h(Field, {
        name: "Token",
        hint: "Kept in this tab only, until it is closed.",
        children: (id) =>
          input({
            id,
            type: "password",
            autocomplete: "off",
            required: true,
            autofocus: true,
            value: token,
            onInput: (event) => setToken(event.currentTarget.value),
          }),
      }),
      button(
        { type: "submit", class: "primary", disabled: busy || token.trim() === "" },
        busy ? "Signing in…" : "Sign in",
      ),
    ),
    error === undefined ? null : problem(error),
    div(
      { class: "next" },
      p("On the box that runs the platform, this prints a link that signs you in, or the token itself:"),
      block("hangar dashboard\nhangar auth token"),
      p("A read-only token, for someone else:"),
      block("hangar tokens create readonly --org personal"),
      p({ class: "dim" }, "No token yet? ", code("npm start"), " makes one at its first start."),
    ),
  );
}
