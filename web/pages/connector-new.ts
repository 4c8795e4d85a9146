import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { form, h, option, select } from "../html.ts";
import { Action, card, Field, showMessage, useAnswer } from "../parts/basics.ts";
import { textField } from "../parts/controls.ts";
import { go } from "../router.ts";
import { call, org } from "../session.ts";

const CUSTOM = "";
const METHODS = ["header", "query", "path"] as const;

/** A connector with a key: to a provider the platform knows, or to any HTTP API. */
export function NewConnector({ onMade }: { onMade: () => void }): VNode {
  const [provider, setProvider] = useState(CUSTOM);
  const [name, setName] = useState("");
  const [url, setUrl] = useState("");
  const [key, setKey] = useState("");
  const [method, setMethod] = useState<(typeof METHODS)[number]>("header");
  const providers = useAnswer((signal) => call("GET /v1/oauth/providers", { signal }), []);
  const byKey = (providers.value?.providers ?? []).filter(({ connected_by }) => connected_by.includes("api_key"));
  const make = async (): Promise<void> => {
    const { connection } =
      provider === CUSTOM
        ? await call("POST /v1/oauth/connections/custom_api", {
            body: { name, base_api_url: url, access_token: key, auth_method: method, org_slug: org() },
          })
        : await call("POST /v1/oauth/connections/api_key", {
            body: { provider, api_key: key, ...(name ? { name } : {}), org_slug: org() },
          });
    setKey("");
    showMessage("Created. No machine may use it until its policy allows it.");
    onMade();
    go("connectors", connection.id);
  };
  return card(
    "New connector",
    form(
      { class: "row-form", onSubmit: (event) => event.preventDefault() },
      h(Field, {
        name: "Provider",
        children: (id) =>
          select(
            { id, value: provider, onChange: (event) => setProvider(event.currentTarget.value) },
            option({ value: CUSTOM }, "any HTTP API"),
            ...byKey.map((one) => option({ key: one.provider, value: one.provider }, one.title)),
          ),
      }),
      textField("Name", name, setName, { placeholder: "billing" }),
      provider === CUSTOM
        ? textField("Address", url, setUrl, { type: "url", placeholder: "https://api.example.com/v1" })
        : null,
      textField("Key", key, setKey, { type: "password" }),
      provider === CUSTOM
        ? h(Field, {
            name: "Sent in the",
            children: (id) =>
              select(
                { id, value: method, onChange: (event) => setMethod(event.currentTarget.value as typeof method) },
                ...METHODS.map((value) => option({ key: value, value }, value)),
              ),
          })
        : null,
      h(Action, { name: "Create", class: "primary", disabled: key === "", work: make }),
    ),
  );
}
