/** What is being built and deployed in the organization, as its stream of events says. */
import type { Api } from "#client/api.ts";
import { Cell } from "./cell.ts";

type Builds = Api["GET /v1/orgs/:org_slug/builds"]["answer"]["builds"];
type Deployments = Api["GET /v1/orgs/:org_slug/deployments"]["answer"]["deployments"];

export interface Ongoing {
  /** Queued and running. */
  builds: Builds;
  /** Each app's newest build, where that failed. */
  failed_builds: Builds;
  deployments: Deployments;
}

const NOTHING: Ongoing = { builds: [], failed_builds: [], deployments: [] };

export const ongoing = new Cell(NOTHING);

/** Of another organization, or after a sign-out. */
export const forget = (): void => ongoing.set(NOTHING);

/** Takes the message if it is one of these; the others are events of machines. */
export function takeOngoing(message: object): boolean {
  if (!("failed_builds" in message)) return false;
  ongoing.set(message as Ongoing);
  return true;
}
