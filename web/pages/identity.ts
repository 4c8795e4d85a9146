import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import { code, div, form, h, input, p } from "../html.ts";
import {
  Action,
  Ago,
  badge,
  block,
  card,
  Field,
  identifier,
  pageHead,
  sheet,
  showMessage,
  useAnswer,
  when,
} from "../parts/basics.ts";
import { choices, named, useShared } from "../parts/controls.ts";
import { confirmed } from "../parts/dialog.ts";
import { call, isFull, org, session } from "../session.ts";

/** Machine identity: issuer, keys, and trust policies for clouds. */
export function Page(): VNode {
  const full = isFull(useCell(session));
  const org_slug = org();
  const found = useShared(
    (signal) => call("GET /oidc/:org_slug/.well-known/openid-configuration", { params: { org_slug }, signal }),
    [org_slug],
  );
  return div(
    pageHead("Identity"),
    card(
      "The issuer",
      when(found, ({ issuer, jwks_uri }) =>
        div(
          p(
            "Every machine can request an identity token; its subject is ",
            code("organization:app:machine"),
            ". A service that trusts this issuer needs no secret in the machine.",
          ),
          p(identifier(issuer)),
          p({ class: "dim" }, "Its keys: ", identifier(jwks_uri)),
          block(
            `curl --unix-socket /.svc/api -X POST http://localhost/v1/tokens/oidc -H 'content-type: application/json' -d '{"aud": "sts.amazonaws.com"}'`,
          ),
        ),
      ),
    ),
    when(found, ({ issuer }) => h(Trust, { issuer })),
    h(Keys, { full }),
  );
}

type Cloud = "AWS" | "Vault" | "Google Cloud";

/** Trust policies. The subject ends in `:*` or a whole name: `app*` would match `app-evil` too. */
function policies(issuer: string, subject: string): Record<Cloud, string> {
  const host = issuer.replace(/^https?:\/\//, "");
  const exact = !subject.endsWith("*");
  const aws = {
    Version: "2012-10-17",
    Statement: [
      {
        Effect: "Allow",
        Principal: { Federated: `arn:aws:iam::ACCOUNT:oidc-provider/${host}` },
        Action: "sts:AssumeRoleWithWebIdentity",
        Condition: {
          StringEquals: { [`${host}:aud`]: "sts.amazonaws.com", ...(exact ? { [`${host}:sub`]: subject } : {}) },
          ...(exact ? {} : { StringLike: { [`${host}:sub`]: subject } }),
        },
      },
    ],
  };
  return {
    AWS: JSON.stringify(aws, null, 2),
    Vault: `vault write auth/jwt/config oidc_discovery_url=${issuer}\nvault write auth/jwt/role/machines role_type=jwt user_claim=sub \\\n  bound_audiences=vault bound_claims_type=glob bound_claims='{"sub": "${subject}"}' policies=machines`,
    "Google Cloud": `gcloud iam workload-identity-pools providers create-oidc hangar --location=global --workload-identity-pool=POOL \\\n  --issuer-uri=${issuer} --attribute-mapping=google.subject=assertion.sub \\\n  --attribute-condition='assertion.sub${exact ? ` == "${subject}"` : `.startsWith("${subject.slice(0, -1)}")`}'`,
  };
}

function Trust({ issuer }: { issuer: string }): VNode {
  const [app, setApp] = useState("");
  const [machine, setMachine] = useState("");
  const [cloud, setCloud] = useState<Cloud>("AWS");
  const subject = app ? `${org()}:${app}:${machine || "*"}` : `${org()}:*`;
  const texts = policies(issuer, subject);
  return card(
    "Trust policy",
    form(
      { class: "row-form", onSubmit: (event) => event.preventDefault() },
      h(Field, {
        name: "App",
        children: (id) =>
          input({
            id,
            type: "text",
            autocomplete: "off",
            placeholder: "any",
            value: app,
            onInput: (event) => setApp(event.currentTarget.value),
          }),
      }),
      h(Field, {
        name: "Machine name",
        children: (id) =>
          input({
            id,
            type: "text",
            autocomplete: "off",
            placeholder: "any",
            disabled: app === "",
            value: machine,
            onInput: (event) => setMachine(event.currentTarget.value),
          }),
      }),
    ),
    choices({ class: "chips", label: "For" }, named(Object.keys(texts) as Cloud[]), cloud, setCloud),
    p("Trusts the subject ", code(subject), "."),
    block(texts[cloud]),
  );
}

function Keys({ full }: { full: boolean }): VNode {
  const params = { org_slug: org() };
  const answer = useAnswer((signal) => call("GET /v1/orgs/:org_slug/oidc/keys", { params, signal }), [params.org_slug]);
  const rotate = async (): Promise<void> => {
    const text =
      "New keys are published first and sign an hour later; tokens signed with the old ones stay valid until they expire.";
    if (!(await confirmed("Rotate keys?", text, "Rotate keys", false))) return;
    await call("POST /v1/orgs/:org_slug/oidc/rotate", { params, body: {} });
    showMessage("New keys are published.");
    answer.again();
  };
  return card(
    "Keys",
    full ? p(h(Action, { name: "Rotate keys", work: rotate })) : null,
    when(answer, ({ keys }) =>
      sheet(
        "Keys",
        ["key", "algorithm", "state", "made", "signs from"],
        keys.map((key) => ({
          key: key.kid,
          cells: [
            code(key.kid),
            key.alg,
            badge(key.state),
            h(Ago, { ms: Date.parse(key.created_at) }),
            new Date(key.sign_from).toLocaleString(),
          ],
        })),
      ),
    ),
  );
}
