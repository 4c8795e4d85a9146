/** Nanoseconds since 1970 of an RFC 3339 time with nine decimals, in UTC. */
export const nanosOfStamp = (stamp: string): string => `${Date.parse(`${stamp.slice(0, 23)}Z`)}${stamp.slice(23, 29)}`;
