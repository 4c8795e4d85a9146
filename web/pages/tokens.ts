import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import { code, div, form, h, input, li, option, p, select, span, ul } from "../html.ts";
import {
  Action,
  Ago,
  block,
  card,
  empty,
  Field,
  pageHead,
  problem,
  sheet,
  showMessage,
  when,
} from "../parts/basics.ts";
import { useShared } from "../parts/controls.ts";
import { confirmed } from "../parts/dialog.ts";
import { call, isFull, org, type Session, session } from "../session.ts";

/** The own token, the organization's tokens, and a check of a token's rights. */
export function Page(): VNode {
  const now = useCell(session);
  const full = isFull(now);
  const answer = useShared(
    (signal) => call("GET /v1/orgs/:org_slug/tokens", { params: { org_slug: org() }, signal }),
    [now?.org_slug],
  );
  const revoke = (token_id: string, name: string) => async (): Promise<void> => {
    if (
      !(await confirmed(
        `Revoke ${name}?`,
        "It becomes invalid at once, with every token derived from it.",
        "Revoke it",
      ))
    )
      return;
    await call("DELETE /v1/orgs/:org_slug/tokens/:token_id", { params: { org_slug: org(), token_id } });
    showMessage(`${name} is revoked.`);
    answer.again();
  };
  const revokeButton = (token_id: string, name: string): VNode =>
    h(Action, { name: "Revoke", class: "danger", work: revoke(token_id, name) });
  return div(
    pageHead("Tokens"),
    now ? h(Own, { now }) : null,
    full ? h(NewToken, { onMade: answer.again }) : null,
    card(
      `Tokens of ${org()}`,
      when(answer, ({ tokens }) =>
        tokens.length === 0
          ? empty("None yet.", block(`hangar tokens create readonly --org ${org()}`))
          : sheet(
              "Tokens",
              ["name", "kind", "made", "ends", "id", ...(full ? ["revoke"] : [])],
              tokens.map((token) => ({
                key: token.id,
                class: token.revoked_at ? "gone" : "",
                cells: [
                  token.name || span({ class: "dim" }, "no name"),
                  token.kind,
                  h(Ago, { ms: Date.parse(token.created_at) }),
                  ending(token),
                  code({ class: "dim" }, token.id),
                  ...(full ? [token.revoked_at ? null : revokeButton(token.id, token.name || token.id)] : []),
                ],
              })),
            ),
      ),
    ),
    h(Tester, {}),
  );
}

function ending({ expires_at, revoked_at }: { expires_at: string | null; revoked_at: string | null }): VNode {
  if (revoked_at) return span({ class: "tag" }, "revoked");
  return expires_at ? span(new Date(expires_at).toLocaleDateString()) : span({ class: "dim" }, "never");
}

function Own({ now }: { now: Session }): VNode {
  return card(
    "The token of this tab",
    p(code(now.token_name), ` · ${now.kind}. It may do:`),
    ul(...now.rights.map((right) => li({ key: right }, right))),
  );
}

const KINDS = { org: "org: everything in this organization", readonly: "readonly: read access only" } as const;

function NewToken({ onMade }: { onMade: () => void }): VNode {
  const [kind, setKind] = useState<keyof typeof KINDS>("readonly");
  const [name, setName] = useState("");
  const [expiry, setExpiry] = useState("30d");
  const [made, setMade] = useState("");
  const make = async (): Promise<void> => {
    const { token } = await call("POST /v1/orgs/:org_slug/tokens", {
      params: { org_slug: org() },
      body: { kind, ...(name ? { name } : {}), ...(expiry ? { expiry } : {}) },
    });
    setMade(token);
    onMade();
  };
  return card(
    "New token",
    form(
      { class: "row-form", onSubmit: (event) => event.preventDefault() },
      h(Field, {
        name: "Kind",
        children: (id) =>
          select(
            { id, value: kind, onChange: (event) => setKind(event.currentTarget.value as keyof typeof KINDS) },
            ...Object.entries(KINDS).map(([value, words]) => option({ key: value, value }, words)),
          ),
      }),
      h(Field, {
        name: "Name",
        children: (id) =>
          input({
            id,
            type: "text",
            placeholder: "ci",
            autocomplete: "off",
            value: name,
            onInput: (event) => setName(event.currentTarget.value),
          }),
      }),
      h(Field, {
        name: "Lifetime",
        children: (id) =>
          input({
            id,
            type: "text",
            class: "short",
            placeholder: "30d",
            value: expiry,
            onInput: (event) => setExpiry(event.currentTarget.value),
          }),
      }),
      h(Action, { name: "Create", class: "primary", work: make }),
    ),
    made ? div({ class: "note" }, p("It is shown only once:"), block(made, "Copy the token")) : null,
  );
}

const ACTIONS = ["read", "write", "create", "delete", "control"] as const;

/** Checks a token's rights on the platform, as a request would. */
function Tester(): VNode {
  const [token, setToken] = useState("");
  const [action, setAction] = useState<(typeof ACTIONS)[number]>("write");
  const [app_name, setApp] = useState("");
  const [answer, setAnswer] = useState<{ allowed: boolean; reason?: string | undefined } | undefined>();
  const [error, setError] = useState<unknown>();
  const ask = async (): Promise<void> => {
    setError(undefined);
    const body = { action, ...(token ? { token: token.trim() } : {}), ...(app_name ? { app_name } : {}) };
    await call("POST /v1/tokens/authorize", { body }).then(setAnswer, setError);
  };
  return card(
    "May a token do that?",
    form(
      { class: "row-form", onSubmit: (event) => event.preventDefault() },
      h(Field, {
        name: "Token",
        children: (id) =>
          input({
            id,
            type: "password",
            placeholder: "the token of this tab",
            autocomplete: "off",
            value: token,
            onInput: (event) => setToken(event.currentTarget.value),
          }),
      }),
      h(Field, {
        name: "Action",
        children: (id) =>
          select(
            { id, value: action, onChange: (event) => setAction(event.currentTarget.value as typeof action) },
            ...ACTIONS.map((name) => option({ key: name, value: name }, name)),
          ),
      }),
      h(Field, {
        name: "App",
        children: (id) =>
          input({
            id,
            type: "text",
            placeholder: "any",
            autocomplete: "off",
            value: app_name,
            onInput: (event) => setApp(event.currentTarget.value),
          }),
      }),
      h(Action, { name: "Ask", work: ask }),
    ),
    error === undefined ? null : problem(error),
    answer
      ? p(
          { class: `note ${answer.allowed ? "good" : "bad"}`, role: "status" },
          answer.allowed ? "Yes, it may." : `No: ${answer.reason ?? "it may not"}`,
        )
      : null,
  );
}
