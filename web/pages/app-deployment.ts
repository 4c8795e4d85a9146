/** A deployment in a dialog: its form, what it will do, its request elsewhere, then its output as it runs. */
import type { ComponentChildren, VNode } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { ClientError } from "#client/client.ts";
import { button, div, form, h, h2, h3, li, p, pre, section, ul } from "../html.ts";
import { problem } from "../parts/basics.ts";
import { Dialog } from "../parts/dialog.ts";
import { RequestView, requestTexts } from "../parts/request.ts";
import { call, session } from "../session.ts";

const ROUTE = "POST /v1/apps/:app_name/deployments";
/** Waits for the end of typing before it asks what would happen. */
const TYPING_MS = 400;

export type Deploying = { action: "deploy" | "rollback" | "scale" } & Record<string, unknown>;

export interface Undo {
  title: string;
  body: Deploying;
}

interface Plan {
  key: string;
  command: string;
  lines: readonly string[];
}

/** What is wrong with a field, by the path that the API names. */
export type FieldErrors = Readonly<Record<string, string>>;

interface Props {
  title: string;
  app_name: string;
  /** Undefined while the form is not complete. */
  body: Deploying | undefined;
  /** What takes it back afterwards. */
  undo?: Undo | undefined;
  form: (errors: FieldErrors) => ComponentChildren;
  onClose: () => void;
}

export function DeploymentDialog({ title, app_name, body, undo, form: fields, onClose }: Props): VNode {
  // As it was when it was sent: the app changes while it is deployed.
  const [sent, setSent] = useState<{ body: Deploying; undo: Undo | undefined }>();
  const { plan, error, busy } = usePlan(app_name, sent ? undefined : body);
  const texts =
    body &&
    requestTexts(ROUTE, {
      params: { app_name },
      body,
      hangar: plan?.command ?? `hangar ${body.action} --app ${app_name}`,
    });
  const submit = (event: Event): void => {
    event.preventDefault();
    if (body && plan && !busy) setSent({ body, undo });
  };
  if (sent) return h(Running, { title, app_name, ...sent, onClose });
  return h(
    Dialog,
    { name: title, onClose, class: "wide" },
    form(
      { onSubmit: submit, noValidate: true },
      h2(title),
      fields(fieldErrors(error)),
      section(
        { class: "will", "aria-label": "What will happen", "aria-live": "polite", "aria-busy": busy },
        h3("What will happen"),
        error === undefined ? planned(plan, body) : problem(error),
      ),
      texts ? h(RequestView, { texts }) : null,
      div(
        { class: "actions end" },
        button({ type: "button", onClick: onClose }, "Cancel"),
        button({ type: "submit", class: "primary", disabled: !plan || busy || error !== undefined }, verbOf(title)),
      ),
    ),
  );
}

const verbOf = (title: string): string => (title.split(" ")[0] === "Roll" ? "Roll back" : (title.split(" ")[0] ?? ""));

function planned(plan: Plan | undefined, body: Deploying | undefined): VNode {
  if (!body) return p({ class: "dim" }, "Fill in the form.");
  if (!plan) return div({ class: "skeleton" });
  if (plan.lines.length === 0) return p({ class: "dim" }, "No machine changes; the release is recorded.");
  return ul({ class: "plan" }, ...plan.lines.map((line) => li({ key: line }, line)));
}

function fieldErrors(error: unknown): FieldErrors {
  if (!(error instanceof ClientError)) return {};
  const { details, status } = error.body;
  const image = status?.startsWith("image_") ? { "body.image": error.message } : {};
  const listed = Array.isArray(details) ? (details as { path: string; problem: string; allowed?: string }[]) : [];
  const named = listed.map(({ path, problem, allowed }) => [path, allowed ? `${problem} (${allowed})` : problem]);
  return { ...image, ...(Object.fromEntries(named) as FieldErrors) };
}

/** Asks for a dry run when the form has changed and the typing has ended. */
function usePlan(app_name: string, body: Deploying | undefined) {
  const [plan, setPlan] = useState<Plan>();
  const [failed, setFailed] = useState<{ key: string; error: unknown }>();
  const key = JSON.stringify(body);
  useEffect(() => {
    if (!body) return;
    const ending = new AbortController();
    const ask = (): void => {
      call(ROUTE, {
        params: { app_name },
        body: { ...body, dry_run: true } as never,
        signal: ending.signal,
        headers: { accept: "application/json" },
      }).then(
        ({ command, lines }) => {
          if (ending.signal.aborted) return;
          setPlan({ key, command, lines });
          setFailed(undefined);
        },
        (error: unknown) => ending.signal.aborted || setFailed({ key, error }),
      );
    };
    const timer = setTimeout(ask, TYPING_MS);
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  }, [key]);
  return { plan, error: failed && failed.key === key ? failed.error : undefined, busy: plan?.key !== key };
}

interface Message {
  text?: string;
  complete?: boolean;
  version?: number;
  error?: string;
  hint?: string;
}

function Running({ title, app_name, body, undo, onClose }: Omit<Props, "form" | "body"> & { body: Deploying }): VNode {
  const [lines, setLines] = useState<readonly string[]>([]);
  const [end, setEnd] = useState<Message>();
  const [undoing, setUndoing] = useState(false);
  const element = useRef<HTMLPreElement>(null);
  useEffect(() => {
    // Not aborted when the dialog closes: the deployment goes on, and so may its output.
    const follow = async (): Promise<void> => {
      const messages = session.value?.client.stream<typeof ROUTE, Message>(ROUTE, {
        params: { app_name },
        body: body as never,
      });
      for await (const message of messages ?? [])
        if (message.text === undefined) setEnd(message);
        else setLines((before) => [...before, message.text ?? ""]);
    };
    follow().then(
      () => setEnd((last) => last ?? LOST),
      (error: unknown) => setEnd({ complete: false, error: error instanceof Error ? error.message : String(error) }),
    );
  }, []);
  useEffect(() => {
    if (element.current) element.current.scrollTop = element.current.scrollHeight;
  }, [lines]);
  if (undoing && undo) return h(Running, { key: "undo", title: undo.title, app_name, body: undo.body, onClose });
  return h(
    Dialog,
    { name: title, onClose, class: "wide" },
    h2(title),
    pre({ class: "log", ref: element, tabIndex: 0, role: "log", "aria-label": "Output" }, lines.join("\n") || "…"),
    p({ role: "status" }, end ? outcome(end) : "Running. Closing this window does not stop it."),
    div(
      { class: "actions end" },
      end?.complete && undo ? button({ type: "button", onClick: () => setUndoing(true) }, undo.title) : null,
      button({ type: "button", class: "primary", onClick: onClose }, "Close"),
    ),
  );
}

const LOST: Message = {
  complete: false,
  error: "the connection was lost; the deployment goes on, and the releases show how it ends",
};

const outcome = ({ complete, version, error, hint }: Message): string =>
  complete ? `Done: release v${version} runs.` : `Failed: ${error}${hint ? ` (${hint})` : ""}`;
