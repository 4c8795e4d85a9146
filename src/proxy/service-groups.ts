/** Services of an app as autostop counts them: for each exposed port, the machines that can serve it. */
import type { Entry } from "#network/directory.ts";
import { DEFAULT_SOFT, isServing, type Offer, servicesOf } from "./exposure.ts";

interface Member {
  machine: Entry;
  /** Its internal port. */
  port: number;
  soft: number;
  /** What its config says of `min_machines_running`. */
  minimum: number;
}

export interface ServiceGroup {
  key: string;
  /** For people: `tcp 443`. */
  name: string;
  /** Machines with this service, those at rest included. */
  members: readonly Member[];
  /** Those that get requests: they run, are not cordoned and fail no check. */
  serving: readonly Member[];
  has(machine: Entry): boolean;
  /** Whether `min_machines_running` are left in the home region without this machine and those that are gone. */
  keepsMinimum(machine: Entry, gone: ReadonlySet<string>): boolean;
  /** What fits within the soft limits of the machines that are left then; below zero when none is. */
  capacity(machine: Entry, gone: ReadonlySet<string>): number;
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
  const left = (machine: Entry, gone: ReadonlySet<string>): Member[] =>
    serving.filter(({ machine: { id } }) => id !== machine.id && !gone.has(id));
  return {
    key: `${members[0]?.machine.app_id} ${name}`,
    name,
    members,
    serving,
    has: ({ id }) => members.some(({ machine }) => machine.id === id),
    keepsMinimum: (machine, gone) =>
      machine.region !== home || left(machine, gone).filter((one) => one.machine.region === home).length >= minimum,
    capacity(machine, gone) {
      const others = left(machine, gone);
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

/** Where a service is at home: where its machines' environment says, else where the oldest of them is. */
function homeRegion(machines: readonly Entry[]): string | undefined {
  const told = machines.map(({ config }) => config.env?.["PRIMARY_REGION"]).find((region) => region);
  const oldest = machines.reduce<Entry | undefined>((a, b) => (a && a.created_at <= b.created_at ? a : b), undefined);
  return told ?? oldest?.region;
}
