/** Services of an app as autostop counts them: for each exposed port, the machines that can serve it. */
import type { Entry } from "#network/directory.ts";
import { DEFAULT_SOFT, isServing, type Offer, servicesOf } from "./exposure.ts";

interface Member {
  machine: Entry;
  /** Its internal port. */
  port: number;
  soft: number;
  /** `min_machines_running` of its config. */
  minimum: number;
}

export interface ServiceGroup {
  key: string;
  /** For display: `tcp 443`. */
  name: string;
  /** Machines with this service, including stopped ones. */
  members: readonly Member[];
  /** Machines that get requests: started, not cordoned, no failing check. */
  serving: readonly Member[];
  has(machine: Entry): boolean;
  /** Whether `min_machines_running` remain in the primary region without this machine and those in `stopping`. */
  keepsMinimum(machine: Entry, stopping: ReadonlySet<string>): boolean;
  /** Total of the soft limits of the remaining machines; below zero when none remains. */
  capacity(machine: Entry, stopping: ReadonlySet<string>): number;
}

export function serviceGroups(machines: readonly Entry[]): ServiceGroup[] {
  return [...servicesOf(machines)].map(([name, offers]) => serviceGroup(name, offers));
}

function serviceGroup(name: string, offers: readonly Offer[]): ServiceGroup {
  // A machine may list a port twice.
  const members = [...new Map(offers.map((offer) => [offer.machine.id, memberOf(offer)])).values()];
  const serving = members.filter(isServing);
  const home = homeRegion(members.map(({ machine }) => machine));
  const minimum = Math.max(...members.map((member) => member.minimum));
  const left = (machine: Entry, stopping: ReadonlySet<string>): Member[] =>
    serving.filter(({ machine: { id } }) => id !== machine.id && !stopping.has(id));
  return {
    key: `${members[0]?.machine.app_id} ${name}`,
    name,
    members,
    serving,
    has: ({ id }) => members.some(({ machine }) => machine.id === id),
    keepsMinimum: (machine, stopping) =>
      machine.region !== home || left(machine, stopping).filter((one) => one.machine.region === home).length >= minimum,
    capacity(machine, stopping) {
      const others = left(machine, stopping);
      return others.length === 0 ? -1 : others.reduce((sum, { soft }) => sum + soft, 0);
    },
  };
}

const memberOf = ({ machine, service }: Offer): Member => ({
  machine,
  port: service.internal_port,
  soft: service.concurrency?.soft_limit || DEFAULT_SOFT,
  minimum: service.min_machines_running ?? 0,
});

/** The primary region of a service: from its machines' environment, else that of the oldest machine. */
function homeRegion(machines: readonly Entry[]): string | undefined {
  const primaryRegion = machines.map(({ config }) => config.env?.["PRIMARY_REGION"]).find((region) => region);
  const oldest = machines.reduce<Entry | undefined>((a, b) => (a && a.created_at <= b.created_at ? a : b), undefined);
  return primaryRegion ?? oldest?.region;
}
