import type { OrgListFilter, StateCounts } from "#machines/store.ts";
import type { Machine } from "#machines/types.ts";
import type { Database, Step, Value } from "../database.ts";

/**
 * A narrow row of each machine, in the order of their creation: a search reads these, and the configs of only the
 * machines that it returns.
 */
export const SEARCHED = "FROM machine_search s JOIN machines m ON m.id = s.machine_id";

/** What is searched, except the IPv4 address, which every boot changes. */
const textOf = ({ name, id, app_name, region, private_ip, config }: Machine): string =>
  [name, id, app_name, region, private_ip, config.image].join(" ").toLowerCase();

export const addSearched = (machine: Machine): Step => ({
  sql: "INSERT INTO machine_search (machine_id, org_id, created_at, text) VALUES (?, ?, ?, ?)",
  args: [machine.id, machine.org_id, machine.created_at, textOf(machine)],
});

/** After a new config, or a move: what can change. */
export const putSearched = (machine: Machine): Step => ({
  sql: "UPDATE machine_search SET text = ? WHERE machine_id = ?",
  args: [textOf(machine), machine.id],
  rows: 1,
});

/** The condition that every word occurs. */
export function wordConditions(words: readonly string[]): { sql: string; args: Value[] } {
  const all = words.map((word) => {
    const pattern = `%${word.replaceAll(/[\\%_]/g, "\\$&")}%`;
    const inText = "s.text LIKE ? ESCAPE '\\'";
    if (!/^[\d.]+$/.test(word)) return { sql: inText, args: [pattern] };
    return { sql: `(${inText} OR m.private_ipv4 LIKE ?)`, args: [pattern, pattern] };
  });
  return { sql: all.map(({ sql }) => ` AND ${sql}`).join(""), args: all.flatMap(({ args }) => args) };
}

/** Counts by state, of at most `limit` machines. */
export async function countStates(
  database: Database,
  org_id: string,
  { search = [], region }: Pick<OrgListFilter, "search" | "region">,
  limit: number,
): Promise<StateCounts> {
  const words = wordConditions(search);
  const [from, org] = words.sql === "" ? ["FROM machines m", "m.org_id"] : [SEARCHED, "s.org_id"];
  const place = region === undefined ? "" : " AND m.region = ?";
  const sql = `SELECT f.state, count(*) AS machines FROM (SELECT m.state ${from}
    WHERE ${org} = ? AND m.state <> 'destroyed'${words.sql}${place} LIMIT ?) AS f GROUP BY f.state ORDER BY f.state`;
  const args = [org_id, ...words.args, ...(region === undefined ? [] : [region]), limit];
  const rows = await database.read<{ state: Machine["state"]; machines: number }>(sql, args);
  return Object.fromEntries(rows.map(({ state, machines }) => [state, machines]));
}
