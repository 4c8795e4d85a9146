import type { ReplicatedDatabase } from "../database/database.ts";
import type { DatabaseOptions, TransactionInfo } from "../database/state.ts";

export interface DirectoryOptions
  extends Pick<DatabaseOptions, "node_id" | "clock" | "onFailure" | "sizes" | "max_lag_ms" | "checkpointer" | "step"> {
  dir: string;
  onTransactions(name: string, infos: readonly TransactionInfo[]): void;
  onOpened?(database: ReplicatedDatabase): void;
  /** An older file was restored; this many transactions are undone. */
  onUndone(count: number): void;
  log(message: string): void;
}
