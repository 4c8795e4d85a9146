/** The session: the token, its organization, its permissions, and API calls with it. */
import { Client, ClientError } from "#client/client.ts";
import { Cell } from "./cell.ts";
import { place } from "./router.ts";

const TOKEN = "hangar.token";
const ORG = "hangar.org";
const DEFAULT_ORG = "personal";
/** Browsers drop connections when a network interface changes, as those of machines do: retry. */
const RETRIES = 4;

export interface Organization {
  slug: string;
  name: string;
}

export interface Session {
  client: Client;
  token: string;
  kind: string;
  token_name: string;
  token_id: string;
  /** Its rights, for display. */
  rights: string[];
  organizations: Organization[];
  org_slug: string;
}

export const session = new Cell<Session | undefined>(undefined);
/** Why the last session ended, for the sign-in page. */
export const farewell = new Cell("");

type Call = Client["call"];

/** An authenticated call. An invalid token ends the session. */
export const call: Call = async (route, input) => {
  const now = session.value;
  if (!now) throw new ClientError(401, { error: "not signed in" });
  try {
    return await now.client.call(route, input);
  } catch (thrown) {
    if (thrown instanceof ClientError && thrown.http === 401 && session.value === now) signOut(thrown.message);
    throw thrown;
  }
};

export const org = (): string => session.value?.org_slug ?? "";

/** Metrics queries use another scheme for created tokens. */
export function metricsHeaders(): Record<string, string> {
  const { kind = "", token = "" } = session.value ?? {};
  return { authorization: `${kind === "full" ? "Bearer" : "SvcV1"} ${token}` };
}

export const isReadOnly = (now: Session | undefined): boolean => now?.kind === "readonly";
export const isFull = (now: Session | undefined): boolean => now?.kind === "full";

/** Starts a session; rejects with the platform's error when the token is invalid. */
export async function signIn(text: string): Promise<void> {
  const token = text.trim().replace(/^(Bearer|SvcV1)\s+/i, "");
  const client = new Client({ base_url: location.origin, token, retries: RETRIES });
  const [current, listed] = await Promise.all([
    client.call("GET /v1/tokens/current", {}),
    client.call("GET /v1/orgs", {}),
  ]);
  const [own] = current.tokens;
  if (!own) throw new ClientError(401, { error: "the platform does not know this token" });
  const organizations = listed.organizations.map(({ slug, name }) => ({ slug, name }));
  // A link of a message names the organization it is of.
  const last = place.value.query.get("org") ?? sessionStorage.getItem(ORG);
  const known = [last, DEFAULT_ORG].map((slug) => organizations.find((one) => one.slug === slug)).find(Boolean);
  sessionStorage.setItem(TOKEN, token);
  farewell.set("");
  session.set({
    client,
    token,
    kind: own.kind,
    token_name: own.name,
    token_id: own.token_id,
    rights: own.rights,
    organizations,
    org_slug: own.org_slug ?? (known ?? organizations[0])?.slug ?? "",
  });
}

/** Redeems a sign-in link. It works once, so it is removed from the URL first. */
async function redeem(): Promise<void> {
  const code = /^#\/sign-in\/([\w-]+)/.exec(location.hash)?.[1];
  if (code === undefined) return;
  history.replaceState(null, "", "#/");
  place.set({ path: [], query: new URLSearchParams() });
  const stranger = new Client({ base_url: location.origin, token: undefined, retries: RETRIES });
  const { token } = await stranger.call("POST /v1/tokens/sign_in", { body: { code } });
  sessionStorage.setItem(TOKEN, token);
}

/** Resumes this tab's session, or starts one from a sign-in link. */
export async function resume(): Promise<void> {
  await redeem().catch((thrown: unknown) => farewell.set(thrown instanceof Error ? thrown.message : ""));
  const token = sessionStorage.getItem(TOKEN);
  if (!token) return;
  await signIn(token).catch((thrown: unknown) => {
    // Without a response the token may be valid, and is kept for a reload.
    if (thrown instanceof ClientError && thrown.http === 0) farewell.set(thrown.message);
    else signOut("The token of this tab no longer works.");
  });
}

export function signOut(reason = ""): void {
  sessionStorage.removeItem(TOKEN);
  farewell.set(reason);
  session.set(undefined);
}

export function chooseOrg(org_slug: string): void {
  const now = session.value;
  if (!now) return;
  sessionStorage.setItem(ORG, org_slug);
  session.set({ ...now, org_slug });
}

/** Reloads the organizations after one was created. */
export async function refreshOrgs(): Promise<void> {
  const { organizations } = await call("GET /v1/orgs", {});
  const now = session.value;
  if (now) session.set({ ...now, organizations: organizations.map(({ slug, name }) => ({ slug, name })) });
}
