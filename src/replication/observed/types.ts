/** Types of the reports about replicated-database nodes, for the CLI and the dashboard. */

/** A machine and its version. */
export interface NodeName {
  app_name: string;
  machine_id: string;
  machine_name: string;
  instance_id: string;
}

/** A node's state, as it reports it. */
export interface NodeState {
  primary: boolean;
  term: number;
  /** Its lag at the last message of its primary. */
  lag_ms: number;
  replicas: number;
  /** Transaction of each database. */
  databases: Record<string, number>;
  /** Databases it cannot use now: `busy`, `full`, `damaged`, `missing`, `replaced`, …, and why. */
  problems: Record<string, { state: string; reason: string }>;
}

export interface ObservedNode extends NodeName {
  /** Null when it does not respond. */
  state: NodeState | null;
  /** Why there is no state. */
  reason: string;
}

/** One message of the stream. */
export type NodeMessage = NodeName & { timestamp: number } & (
    | ({ type: "node" } & Pick<ObservedNode, "state" | "reason">)
    | { type: "gone" }
    | { type: "primary"; primary: boolean; hostname?: string }
    /** Number of transactions of a database, the last being `txid`. */
    | { type: "tx"; db: string; transactions: number; txid: number }
  );
