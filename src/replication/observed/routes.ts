import { orgOf } from "#http/access.ts";
import { inPages } from "#http/list-page.ts";
import { type Row, route } from "#http/route.ts";
import { Type } from "#http/schema.ts";
import { Observer, type ObserverParts } from "./observer.ts";

const State = Type.Object({
  primary: Type.Boolean(),
  term: Type.Number({ description: "The highest term it knows of." }),
  lag_ms: Type.Number({ description: "Replication lag at the last message of its primary." }),
  replicas: Type.Number({ description: "Nodes that follow it." }),
  databases: Type.Record(Type.String(), Type.Number(), { description: "The transaction each database is at." }),
  problems: Type.Record(Type.String(), Type.Object({ state: Type.String(), reason: Type.String() }), {
    description: "Databases it cannot use now, and why.",
  }),
});

const Nodes = Type.Object({
  nodes: Type.Array(
    Type.Object({
      app_name: Type.String(),
      machine_id: Type.String(),
      machine_name: Type.String(),
      instance_id: Type.String(),
      state: Type.Union([State, Type.Null()]),
      reason: Type.String({ description: "Why there is no state." }),
    }),
  ),
});

const STREAM =
  "A node is a machine whose metrics say that it is one. A server-sent stream: `node` with a changed state, `tx` with the database, the number of transactions and the last one's id, `primary` when the primary has changed, `gone` when the node was removed. With `Accept: application/json` the current state of all of them.";

/** The nodes of replicated databases, as they are and as they change. */
export function observedRoutes(parts: ObserverParts): Row[] {
  const observer = new Observer(parts);
  return [
    route("GET /v1/orgs/:org_slug/db_nodes", {
      summary: "Nodes of an organization's replicated databases, with their events as they happen",
      description: STREAM,
      part: "databases",
      access: "read org",
      pages: inPages("nodes", ["text", "text"]),
      response: { status: 200, schema: Nodes },
      errors: ["overloaded"],
      async handle(call) {
        const all = await observer.list(orgOf(call).id, call.signal);
        return { nodes: call.page.of(all, ({ app_name, machine_id }) => [app_name, machine_id]) };
      },
      stream: (call) => items(observer.follow(orgOf(call).id, call.signal)),
    }),
  ];
}

async function* items(messages: ReturnType<Observer["follow"]>) {
  for await (const some of messages) yield some.map((data) => ({ event: `db.${data.type}`, data }));
}
