/** What `GET /v1/orgs/:org_slug/db_nodes` tells. */
export type { NodeMessage, NodeName, NodeState, ObservedNode } from "#core/db-nodes.ts";
