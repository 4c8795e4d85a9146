/** Types of the reports about replicated-database nodes, for the CLI and the dashboard. */

/** Which node it is about: a machine, in one of its versions. */
export interface NodeName {
  app_name: string;
  machine_id: string;
  machine_name: string;
  instance_id: string;
}

/** How a node is, by its own account. */
export interface NodeState {
  primary: boolean;
  term: number;
  /** How far it was behind at the last word of its primary. */
  lag_ms: number;
  replicas: number;
  /** The transaction each of its databases is at. */
  databases: Record<string, number>;
  /** Databases it cannot use now: `busy`, `full`, `damaged`, `missing`, `replaced`, …, and why. */
  problems: Record<string, { state: string; reason: string }>;
}

export interface ObservedNode extends NodeName {
  /** Null when it does not answer. */
  state: NodeState | null;
  /** Why there is no state. */
  reason: string;
}

/** One message of the stream. */
export type NodeMessage = NodeName & { timestamp: number } & (
    | ({ type: "node" } & Pick<ObservedNode, "state" | "reason">)
    | { type: "gone" }
    | { type: "primary"; primary: boolean; hostname?: string }
    /** So many transactions of a database, the last of them `txid`. */
    | { type: "tx"; db: string; transactions: number; txid: number }
  );
