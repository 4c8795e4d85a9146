/** Simulated metrics of hosted databases: the values of a small database with little traffic. */
import type { Clock } from "#core/clock.ts";
import type { BuiltinSample, Machines, MeasuredMachine, SampleProvider } from "#metrics/builtin/sources.ts";
import { SimReadings } from "./stats.ts";

type Fields = Record<string, number>;

const DATABASE = { datname: "postgres" };
const MIB = 2 ** 20;

export function simDatabases({ clock, machines }: { clock: Clock; machines: Machines }): SampleProvider {
  return async () =>
    (await machines())
      .filter(({ postgres_port }) => postgres_port !== undefined)
      .flatMap((machine) => databaseOf(machine, new SimReadings(machine, clock.now())));
}

function databaseOf({ org_id, app, region, host, instance, started_at }: MeasuredMachine, temper: SimReadings) {
  const samples: BuiltinSample[] = [];
  const emit = (prefix: string, fields: Fields, own: Record<string, string> = {}): void => {
    const labels = { app, region, host, instance, ...own };
    for (const [name, value] of Object.entries(fields)) samples.push({ org_id, name: prefix + name, labels, value });
  };
  const stats_reset = Math.floor(started_at / 1000);
  const wal = temper.counter("wal", 20_000);
  emit("pg_stat_activity_", { count: 1, max_tx_duration: 0 }, { ...DATABASE, state: "active" });
  emit("pg_stat_activity_", { count: backends(temper), max_tx_duration: 0.01 }, { ...DATABASE, state: "idle" });
  emit("pg_stat_archiver_", { archived_count: Math.floor(wal / (16 * MIB)), failed_count: 0 });
  emit("pg_stat_bgwriter_", { ...writerOf(temper), stats_reset });
  emit("pg_stat_database_", { ...activityOf(temper), stats_reset }, DATABASE);
  const replication = { pg_current_wal_lsn_bytes: 16 * MIB + wal, pg_wal_lsn_diff: 0, reply_time: 0 };
  emit("pg_stat_replication_", replication, { application_name: "", client_addr: "" });
  emit("pg_", { replication_lag: 0 });
  emit("pg_", { database_size_bytes: 8 * MIB + temper.counter("rows written", 400) }, DATABASE);
  return samples;
}

const backends = (temper: SimReadings): number => Math.round(temper.gauge("backends", 6, 0.6));

function writerOf(temper: SimReadings): Fields {
  const written = temper.counter("buffers", 3);
  return {
    buffers_alloc: temper.counter("buffers alloc", 5),
    buffers_backend: Math.floor(written / 10),
    buffers_backend_fsync: 0,
    buffers_checkpoint: written,
    buffers_clean: Math.floor(written / 4),
    checkpoint_sync_time: written,
    checkpoint_write_time: written * 20,
    checkpoints_req: 1,
    checkpoints_timed: Math.floor(temper.age / 300),
    maxwritten_clean: 0,
  };
}

function activityOf(temper: SimReadings): Fields {
  const commits = temper.counter("commits", 12);
  const reads = temper.counter("blocks read", 4);
  return {
    blk_read_time: reads * 0.2,
    blk_write_time: 0,
    blks_hit: commits * 40,
    blks_read: reads,
    conflicts: 0,
    conflicts_confl_bufferpin: 0,
    conflicts_confl_deadlock: 0,
    conflicts_confl_lock: 0,
    conflicts_confl_snapshot: 0,
    conflicts_confl_tablespace: 0,
    deadlocks: 0,
    numbackends: backends(temper) + 1,
    tup_deleted: Math.floor(commits / 20),
    tup_fetched: commits * 8,
    tup_inserted: commits,
    tup_returned: commits * 30,
    tup_updated: Math.floor(commits / 3),
    xact_commit: commits,
    xact_rollback: Math.floor(commits / 200),
  };
}
