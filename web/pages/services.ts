import type { VNode } from "preact";
import { a, div, h, p, span } from "../html.ts";
import { badge, block, empty, pageHead, sheet, when } from "../parts/basics.ts";
import { useShared } from "../parts/controls.ts";
import { to } from "../router.ts";
import { call, org } from "../session.ts";
import { addresses, portWords, type Service, troubles } from "./app-services.ts";

/** Apps are requested one by one; further ones have their own pages. */
const APPS = 50;

interface Route {
  app_name: string;
  open: boolean;
  service: Service;
}

async function routes(signal: AbortSignal): Promise<Route[]> {
  const { apps } = await call("GET /v1/apps", { query: { org_slug: org() }, signal });
  const lists = await Promise.all(
    apps
      .filter(({ machine_count }) => machine_count > 0)
      .slice(0, APPS)
      .map(async ({ name: app_name }) => {
        const { open, services } = await call("GET /v1/apps/:app_name/services", { params: { app_name }, signal });
        return services.map((service) => ({ app_name, open, service }));
      }),
  );
  return lists.flat();
}

/** All public addresses, with their apps and machines. */
export function Page(): VNode {
  const answer = useShared(routes, [org()]);
  return div(
    pageHead("Services"),
    when(answer, (found) =>
      found.length === 0
        ? empty(
            "No published services yet.",
            p("A machine with a service, and an address for its app:"),
            block("hangar machines run hangar/hello --app hello --port 80:8080/http"),
          )
        : sheet(
            "Services",
            ["app", "port", "address", "serving", "state"],
            found.map(({ app_name, open, service }) => ({
              key: `${app_name} ${portWords(service)}`,
              cells: [
                a({ href: to("apps", app_name, "services") }, app_name),
                portWords(service),
                addresses(service),
                `${service.machines.filter(({ serving, problem }) => serving && !problem).length} of ${service.machines.length}`,
                open
                  ? troubles(service).length > 0
                    ? span({ title: troubles(service).join("\n") }, badge("warning"))
                    : badge("ok")
                  : span({ class: "dim" }, "closed: no address"),
              ],
            })),
          ),
    ),
    h(Hint, {}),
  );
}

const Hint = (): VNode =>
  p(
    { class: "dim" },
    "The edge proxy routes requests to healthy machines, starts stopped and suspended ones on a request, and stops idle ones.",
  );
