import type { VNode } from "preact";
import { useState } from "preact/hooks";
import { useCell } from "../cell.ts";
import { a, code, dd, div, dl, dt, form, h, input, p } from "../html.ts";
import { Action, Ago, block, card, Field, loading, pageHead, showMessage, useAnswer, when } from "../parts/basics.ts";
import { choices, named } from "../parts/controls.ts";
import { bytes, plural } from "../parts/format.ts";
import { partName } from "../parts/readiness.ts";
import { readiness } from "../readiness.ts";
import { call, chooseOrg, isFull, org, refreshOrgs, session } from "../session.ts";
import { setTheme, type Theme, theme } from "../theme.ts";
import { LogDrains } from "./log-drains.ts";

/** Settings of this browser, organization and platform. */
export function Page(): VNode {
  const full = isFull(useCell(session));
  return div(
    pageHead("Settings"),
    card("This browser", h(ThemeChoice, {}), p({ class: "dim" }, "Ctrl K searches, / focuses the filter of a page.")),
    full ? h(NewOrg, {}) : null,
    full ? h(Facts, {}) : h(Version, {}),
    h(Ready, {}),
    h(LogDrains, {}),
    card(
      "Host capabilities",
      p("Programs, kernel and disk, each with the command that installs what is missing. On the host, run:"),
      block("hangar doctor"),
      p(
        "Settings are environment variables, flags or keys of a config file; ",
        code("hangar up --help"),
        " lists them. The API is readable at ",
        a({ href: "/docs", target: "_blank", rel: "noopener" }, "/docs"),
        ".",
      ),
    ),
    card(
      "Grafana",
      p(
        "A Prometheus data source, with this organization's metrics and an ",
        code("Authorization"),
        " header of a read-only token:",
      ),
      block(`${location.origin}/prometheus/${org()}/`),
    ),
  );
}

const THEMES: readonly Theme[] = ["system", "light", "dark"];

function ThemeChoice(): VNode {
  const now = useCell(theme);
  return choices({ class: "chips", label: "Light or dark" }, named(THEMES), now, setTheme);
}

function NewOrg(): VNode {
  const [name, setName] = useState("");
  const make = async (): Promise<void> => {
    const { slug } = await call("POST /v1/orgs", { body: { name: name.trim() } });
    await refreshOrgs();
    showMessage(`Created organization ${slug}.`);
    chooseOrg(slug);
  };
  return card(
    "New organization",
    form(
      { class: "row-form", onSubmit: (event) => event.preventDefault() },
      h(Field, {
        name: "Name",
        hint: "Apps, machines, metrics and networks of an organization are invisible to all others.",
        children: (id) =>
          input({
            id,
            type: "text",
            autocomplete: "off",
            value: name,
            onInput: (event) => setName(event.currentTarget.value),
          }),
      }),
      h(Action, { name: "Create", class: "primary", disabled: name.trim() === "", work: make }),
    ),
  );
}

function Version(): VNode {
  const answer = useAnswer((signal) => call("GET /healthz", { signal }), []);
  return card(
    "This platform",
    when(answer, ({ version }) => p("Hangar ", code(version))),
  );
}

/** Parts of the platform that are ready; what is missing is shown above every page. */
function Ready(): VNode {
  const { ready, missing } = useCell(readiness);
  if (missing.length > 0)
    return card("Readiness", p(`Not ready: ${missing.map(({ part }) => partName(part)).join(", ")}.`));
  return card("Readiness", ready.length > 0 ? p(`Ready: ${ready.map(partName).join(", ")}.`) : loading());
}

function Facts(): VNode {
  const answer = useAnswer((signal) => call("GET /v1/platform/facts", { signal }), []);
  return card(
    "This platform",
    when(answer, (facts) => {
      const rows: [string, VNode | string][] = [
        ["Version", facts.version],
        ["Address", code(facts.base_url)],
        ["Driver", facts.driver],
        ["Database", facts.database],
        ["Disk I/O", `${facts.machine_io}, for each machine and disk`],
        ["Started", h(Ago, { ms: Date.parse(facts.started_at) })],
        ["Node", `${facts.node} on ${facts.system}`],
        [
          "Memory",
          `${bytes(facts.memory_bytes)} used by the platform, ${bytes(facts.box_free_bytes)} of ${bytes(facts.box_memory_bytes)} free on the box`,
        ],
        ["Load", `${facts.load.map((n) => n.toFixed(2)).join(", ")} on ${plural(facts.cpus, "CPU")}`],
        ["Disk", `${bytes(facts.disk_free_bytes)} of ${bytes(facts.disk_bytes)} free for the data dir`],
      ];
      return dl({ class: "facts" }, ...rows.map(([name, value]) => div({ key: name }, dt(name), dd(value))));
    }),
  );
}
