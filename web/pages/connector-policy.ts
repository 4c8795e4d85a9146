import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { div, form, h, input, label, p, textarea } from "../html.ts";
import { Action, card, Field, problem, showMessage } from "../parts/basics.ts";
import { call } from "../session.ts";
import { type AccessPolicy, Rules, type Verdict } from "./policy-rules.ts";

/** Summarizes who may use it. */
export function policyWords({
  allow_all,
  name_prefix,
  sprite_labels = [],
  allowed_endpoints = [],
  blocked_endpoints = [],
}: AccessPolicy): string {
  const who = [
    name_prefix ? `named ${name_prefix}…` : "",
    sprite_labels.length > 0 ? `labelled ${sprite_labels.join(" and ")}` : "",
  ].filter(Boolean);
  const paths = [
    allowed_endpoints.length > 0 ? `${allowed_endpoints.length} allowed` : "",
    blocked_endpoints.length > 0 ? `${blocked_endpoints.length} blocked` : "",
  ].filter(Boolean);
  const machines = allow_all ? "every machine" : who.length > 0 ? `machines ${who.join(", ")}` : "no machine";
  return paths.length > 0 ? `${machines}; paths: ${paths.join(", ")}` : machines;
}

const linesOf = (list: readonly string[] | undefined): string => (list ?? []).join("\n");
const listOf = (text: string): string[] =>
  text
    .split("\n")
    .map((line) => line.trim())
    .filter(Boolean);

interface Draft {
  allow_all: boolean;
  name_prefix: string;
  labels: string;
  allowed: string;
  blocked: string;
}

function policyOf({ allow_all, name_prefix, labels, allowed, blocked }: Draft): AccessPolicy {
  return {
    ...(allow_all ? { allow_all } : {}),
    ...(name_prefix ? { name_prefix } : {}),
    ...(labels.trim() ? { sprite_labels: listOf(labels) } : {}),
    ...(allowed.trim() ? { allowed_endpoints: listOf(allowed) } : {}),
    ...(blocked.trim() ? { blocked_endpoints: listOf(blocked) } : {}),
  };
}

interface Props {
  connection_id: string;
  policy: AccessPolicy;
  readOnly: boolean;
  onSaved: () => void;
}

/** The policy as rules beside a tester, and as a form: a draft can be read and tested before it is saved. */
export function Policy({ connection_id, policy, readOnly, onSaved }: Props): VNode {
  const [draft, setDraft] = useState<Draft>({
    allow_all: policy.allow_all ?? false,
    name_prefix: policy.name_prefix ?? "",
    labels: linesOf(policy.sprite_labels),
    allowed: linesOf(policy.allowed_endpoints),
    blocked: linesOf(policy.blocked_endpoints),
  });
  const set = (change: Partial<Draft>): void => setDraft({ ...draft, ...change });
  const save = async (): Promise<void> => {
    await call("PUT /v1/oauth/connections/:connection_id", {
      params: { connection_id },
      body: { access_policy: policyOf(draft) },
    });
    showMessage("The next request is judged by it.");
    onSaved();
  };
  const area = (name: string, key: "labels" | "allowed" | "blocked", hint: string): VNode =>
    h(Field, {
      name,
      hint,
      children: (id) =>
        textarea({
          id,
          class: "code",
          rows: 3,
          spellcheck: false,
          disabled: readOnly,
          value: draft[key],
          onInput: (event) => set({ [key]: event.currentTarget.value }),
        }),
    });
  return card(
    "Policy",
    h(Tested, { connection_id, policy: policyOf(draft) }),
    form(
      { class: "stack", onSubmit: (event) => event.preventDefault() },
      label(
        { class: "check" },
        input({
          type: "checkbox",
          checked: draft.allow_all,
          disabled: readOnly,
          onChange: () => set({ allow_all: !draft.allow_all }),
        }),
        "Every machine may use it",
      ),
      h(Field, {
        name: "Machines whose name begins with",
        children: (id) =>
          input({
            id,
            type: "text",
            autocomplete: "off",
            disabled: readOnly,
            value: draft.name_prefix,
            onInput: (event) => set({ name_prefix: event.currentTarget.value }),
          }),
      }),
      area("Machines with all of these labels", "labels", "One per line; the name has to match as well."),
      area("Allowed paths", "allowed", "One per line; a trailing * matches any suffix. Empty: all."),
      area("Blocked paths", "blocked", "These win over the allowed ones."),
      readOnly ? null : div({ class: "actions" }, h(Action, { name: "Save the policy", class: "primary", work: save })),
    ),
  );
}

/** The rules, and beside them the tester, whose result marks the deciding rule until the policy changes. */
function Tested({ connection_id, policy }: { connection_id: string; policy: AccessPolicy }): VNode {
  const [last, setLast] = useState<{ verdict: Verdict; policy: string }>();
  const written = JSON.stringify(policy);
  const verdict = last?.policy === written ? last.verdict : undefined;
  const onVerdict = (found: Verdict): void => setLast({ verdict: found, policy: written });
  return div(
    { class: "columns gapped" },
    div(p({ class: "dim" }, "Applied from the top: first the machine, then the path."), h(Rules, { policy, verdict })),
    h(Tester, { connection_id, policy, verdict, onVerdict }),
  );
}

interface TesterProps {
  connection_id: string;
  policy: AccessPolicy;
  verdict: Verdict | undefined;
  onVerdict: (verdict: Verdict) => void;
}

/** Shows which rule applies to a machine and a path, evaluated by the gateway with the draft. */
function Tester({ connection_id, policy, verdict, onVerdict }: TesterProps): VNode {
  const [sprite, setSprite] = useState("");
  const [labels, setLabels] = useState("");
  const [path, setPath] = useState("/");
  const [error, setError] = useState<unknown>();
  const ask = async (): Promise<void> => {
    setError(undefined);
    const body = {
      sprite,
      path,
      labels: labels
        .split(",")
        .map((one) => one.trim())
        .filter(Boolean),
      access_policy: policy,
    };
    await call("POST /v1/oauth/connections/:connection_id/explain", { params: { connection_id }, body }).then(
      onVerdict,
      setError,
    );
  };
  const text = (name: string, value: string, change: (value: string) => void, placeholder: string): VNode =>
    h(Field, {
      name,
      children: (id) =>
        input({
          id,
          type: "text",
          autocomplete: "off",
          spellcheck: false,
          placeholder,
          value,
          onInput: (event) => change(event.currentTarget.value),
        }),
    });
  return form(
    { class: "stack tester", onSubmit: (event) => event.preventDefault() },
    p({ class: "dim" }, "Test this policy, saved or not."),
    text("Machine", sprite, setSprite, "agent-1"),
    text("Its labels", labels, setLabels, "prod, agent"),
    text("Path", path, setPath, "/repos/shop/web/issues"),
    div({ class: "actions" }, h(Action, { name: "Test policy", work: ask })),
    error === undefined ? null : problem(error),
    verdict
      ? p(
          { class: `note ${verdict.allowed ? "good" : "bad"}`, role: "status" },
          `${verdict.allowed ? "Yes" : "No"}: ${verdict.reason} (${verdict.rule})`,
        )
      : null,
  );
}
