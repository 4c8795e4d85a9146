/** Kinds of address an app can have. The private one is for machines of its organization; egress is never listened on. */
export const ADDRESS_TYPES = ["shared_v4", "v4", "v6", "private_v6", "egress_v4", "egress_v6", "egress_pair"] as const;
export type AddressType = (typeof ADDRESS_TYPES)[number];

/** An address of an app, which opens its service ports. */
export interface IpAssignment {
  ip: string;
  app_id: string;
  type: AddressType;
  region: string;
  /** Shared with other apps; requests are distinguished by host name. */
  shared: boolean;
  service_name: string | null;
  network: string | null;
  created_at: number;
}

export const isEgress = ({ type }: Pick<IpAssignment, "type">): boolean => type.startsWith("egress");
