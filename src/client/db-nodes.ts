import type { Api } from "./api.ts";

/** A node of a replicated database, as `GET /v1/orgs/:org_slug/db_nodes` lists it. */
export type ObservedNode = Api["GET /v1/orgs/:org_slug/db_nodes"]["answer"]["nodes"][number];
export type NodeState = NonNullable<ObservedNode["state"]>;

/** One message of the stream of the same route. */
export type NodeMessage = Omit<ObservedNode, "state" | "reason"> & { timestamp: number } & (
    | ({ type: "node" } & Pick<ObservedNode, "state" | "reason">)
    | { type: "gone" }
    | { type: "primary"; primary: boolean; hostname?: string }
    /** So many transactions of a database, the last of them `txid`. */
    | { type: "tx"; db: string; transactions: number; txid: number }
  );
