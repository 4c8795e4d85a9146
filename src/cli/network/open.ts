import type { MachineConfig } from "#client/api.ts";
import type { Context } from "../verb.ts";

/** Whether a config publishes ports. */
export const offersServices = ({ services }: Partial<MachineConfig>): boolean =>
  (services ?? []).some(({ ports }) => (ports ?? []).length > 0);

/** Allocates the shared address for an app with published ports, if it has none. Prints and returns its URLs. */
export async function openApp({ client, say }: Context, app_name: string): Promise<string[]> {
  const params = { app_name };
  const { ips } = await client.call("GET /v1/apps/:app_name/ip_assignments", { params });
  const open = ips.some(({ egress }) => !egress);
  if (!open) await client.call("POST /v1/apps/:app_name/ip_assignments", { params, body: { type: "shared_v4" } });
  const { services } = await client.call("GET /v1/apps/:app_name/services", { params });
  for (const { urls, problems } of services) say(problems[0] ? `problem: ${problems[0]}` : `at ${urls[0]}`);
  return services.flatMap(({ urls, problems }) => (problems.length > 0 ? [] : urls));
}
