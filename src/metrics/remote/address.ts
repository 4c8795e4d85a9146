/**
 * The address of a remote engine, from the setting `metrics_url`:
 *
 *   http://127.0.0.1:8428                                       one VictoriaMetrics; an org is a label we add and enforce
 *   http://insert:8480/insert/{tenant}/prometheus,http://select:8481/select/{tenant}/prometheus
 *                                                               a cluster; an org is a tenant
 */
export interface RemoteAddress {
  /** Each org has a tenant of its own; otherwise a label identifies it. */
  tenants: boolean;
  /** The base for writes, `/api/v1/write` below it. */
  write(tenant: number): string;
  /** The base for queries, `/api/v1/query` below it. */
  read(tenant: number): string;
  /** The base for deleting an org's series. */
  remove(tenant: number): string;
}

/** Parses the setting; undefined when it is not a valid address. */
export function parseRemoteAddress(text: string): RemoteAddress | undefined {
  const urls = text.split(",").map((url) => url.trim().replace(/\/+$/, ""));
  if (!urls.every(isHttp)) return undefined;
  const [write = "", read] = urls;
  if (read === undefined) {
    const base = (): string => write;
    return write.includes("{tenant}") ? undefined : { tenants: false, write: base, read: base, remove: base };
  }
  if (urls.length > 2 || !write.includes("{tenant}") || !read.includes("{tenant}")) return undefined;
  const fill = (url: string, tenant: number): string => url.replace("{tenant}", String(tenant));
  return {
    tenants: true,
    write: (tenant) => fill(write, tenant),
    read: (tenant) => fill(read, tenant),
    remove: (tenant) => fill(read.replace("/select/", "/delete/"), tenant),
  };
}

function isHttp(url: string): boolean {
  const plain = url.replace("{tenant}", "0");
  return URL.canParse(plain) && /^https?:$/.test(new URL(plain).protocol) && new URL(plain).search === "";
}
