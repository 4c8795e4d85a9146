import type { ReplicatedDatabase } from "../database/database.ts";
import type { DatabaseOptions, TransactionInfo } from "../database/state.ts";

export interface DirectoryOptions
  extends Pick<DatabaseOptions, "node_id" | "clock" | "onFailure" | "sizes" | "max_lag_ms" | "checkpointer" | "step"> {
  dir: string;
  onTransactions(name: string, infos: readonly TransactionInfo[]): void;
  onOpened?(database: ReplicatedDatabase): void;
  /** Another file took a database's place: so many transactions are known to be undone, on all nodes if this is the primary. */
  onUndone(count: number, message: string): void;
  log(message: string): void;
}
