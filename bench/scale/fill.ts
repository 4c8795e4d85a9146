import pg from "pg";

/** Ids of filled machines: far from those that are made up. */
const FIRST_ID = 0xf0_0000_0000_0000n;

/** Rows of a table that are those of the machine `$3`, once for each number from `$1` to `$2`. */
const copies = (table: string, changes: string): string =>
  `INSERT INTO ${table} SELECT (jsonb_populate_record(t, jsonb_build_object(${changes}))).*
   FROM ${table} t CROSS JOIN generate_series($1::bigint, $2::bigint) AS n WHERE ${table === "machines" ? "t.id" : "t.machine_id"} = $3`;

const ID = `lpad(to_hex(${FIRST_ID} + n), 14, '0')`;

/**
 * Fills the database with machines that are at rest: copies of a machine that the platform has made, over all hosts.
 * Creating a hundred thousand one by one takes longer than all the rest of the measurement.
 */
export async function fillMachines(url: string, template: string, from: number, to: number): Promise<void> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const host = "(SELECT id FROM hosts ORDER BY id OFFSET n % (SELECT count(*) FROM hosts) LIMIT 1)";
    const machine = `'id', ${ID}, 'name', 'filled-' || n, 'host_id', ${host}, 'created_at', t.created_at + n, 'updated_at', t.updated_at + n`;
    const args = [from, to - 1, template];
    await client.query(copies("machines", machine), args);
    await client.query(copies("machine_versions", `'machine_id', ${ID}`), args);
    await client.query(copies("machine_metadata", `'machine_id', ${ID}`), args);
    await client.query("UPDATE machine_counters SET machines = machines + $1", [to - from]);
    await client.query("ANALYZE machines, machine_versions, machine_metadata");
  } finally {
    await client.end();
  }
}
