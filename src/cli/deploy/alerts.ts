/** `[[alerts]]` of an app file: the app's own rules. */
import { stringify } from "yaml";
import { ClientError } from "#client/client.ts";
import { type AppFile, tables } from "../app-file/read.ts";
import type { Definition } from "./definition.ts";
import type { Place } from "./place.ts";

/** As a rule file with one group. The platform checks the rules. */
export function alertsOf({ values }: AppFile, app_name: string): Pick<Definition, "alerts"> {
  if (values["alerts"] === undefined) return {};
  return { alerts: stringify({ groups: [{ name: app_name, rules: tables(values["alerts"]) }] }, { lineWidth: 0 }) };
}

/** Set before the release runs; restored on failure. */
export async function setAlerts(
  { context: { client }, app_name, undo, status }: Place,
  content: string,
): Promise<void> {
  const params = { app_name };
  const before = await client.call("GET /v1/apps/:app_name/alerts/rules", { params }).catch((thrown: unknown) => {
    if (thrown instanceof ClientError && thrown.http === 404) return undefined;
    throw thrown;
  });
  if (before?.content === content) return;
  undo.add("the app's rules", () =>
    before
      ? client.call("PUT /v1/apps/:app_name/alerts/rules", { params, body: { content: before.content } })
      : client.call("DELETE /v1/apps/:app_name/alerts/rules", { params }),
  );
  const { rules } = await client.call("PUT /v1/apps/:app_name/alerts/rules", { params, body: { content } });
  status.log(`set ${rules} rules of the app`);
}
