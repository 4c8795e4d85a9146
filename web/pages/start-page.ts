import type { VNode } from "preact";
import { code, div, h, p } from "../html.ts";
import { Action, block, card } from "../parts/basics.ts";
import { go } from "../router.ts";
import { call, org } from "../session.ts";

const APP = "hello";
const IMAGE = "hangar/hello";
const PORT = 8080;

/** The app, a public address and a machine that wakes on a request: what `hangar run` does. */
async function runHello(): Promise<void> {
  const params = { app_name: APP };
  await call("POST /v1/apps", { body: { app_name: APP, org_slug: org() } });
  await call("POST /v1/apps/:app_name/ip_assignments", { params, body: { type: "shared_v4" } });
  const ports = [{ port: PORT, handlers: ["http" as const] }];
  const services = [
    { protocol: "tcp" as const, internal_port: PORT, autostart: true, autostop: "suspend" as const, ports },
  ];
  await call("POST /v1/apps/:app_name/machines", { params, body: { config: { image: IMAGE, services } } });
  go("apps", APP);
}

/** For a platform without apps: three ways to begin, each with its command. */
export function StartPage({ readOnly }: { readOnly: boolean }): VNode {
  return div(
    { class: "start" },
    card(
      "Run the hello image",
      p("A small web server that comes with the platform: a machine, a URL, and it suspends when idle."),
      block(`hangar run ${IMAGE} --autostop suspend`),
      readOnly ? null : p(h(Action, { name: "Run it", class: "primary", work: runHello })),
    ),
    card(
      "Deploy your own app",
      p(
        "In the folder of a Node, Python, Go, Ruby, PHP or static app. The first command writes ",
        code("hangar.toml"),
        ".",
      ),
      block("hangar launch\nhangar deploy"),
    ),
    card(
      "Connect the command line",
      p("On another computer, with a token that you make on the Tokens page."),
      block(`hangar context add home --url ${location.origin} --token TOKEN`),
    ),
  );
}
