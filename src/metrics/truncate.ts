/** `limit` of the query API: the first so many, and Prometheus' own warning when there are more. */
export const TRUNCATED = "results truncated due to limit";

/** Truncates a list that was requested with one more than `limit`, to detect more; 0 means all. */
export async function firstOf(
  limit: number,
  read: (limit: number) => Promise<Uint8Array | readonly unknown[]>,
): Promise<{ data: Uint8Array | readonly unknown[]; warnings: readonly string[] }> {
  const found = await read(limit === 0 ? 0 : limit + 1);
  if (limit === 0) return { data: found, warnings: [] };
  const list = found instanceof Uint8Array ? (JSON.parse(Buffer.from(found).toString()) as unknown[]) : found;
  if (list.length <= limit) return { data: found, warnings: [] };
  return { data: list.slice(0, limit), warnings: [TRUNCATED] };
}

/** The same for a complete response of another engine. */
export function truncateResponse(body: string, limit: number | undefined): string {
  if (!limit) return body;
  const answer = JSON.parse(body) as { data?: { result?: unknown; resultType?: string }; warnings?: string[] };
  const { result, resultType = "" } = answer.data ?? {};
  if (!Array.isArray(result) || !["vector", "matrix"].includes(resultType) || result.length <= limit) return body;
  const data = { ...answer.data, result: result.slice(0, limit) as unknown[] };
  return JSON.stringify({ ...answer, data, warnings: [...(answer.warnings ?? []), TRUNCATED] });
}
