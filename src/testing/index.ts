/** `@hangar-machines/hangar/testing`: a platform in memory, for tests of what uses one. docs/testing.md shows how. */
export type { Api } from "#client/api.ts";
export { Client, ClientError } from "#client/client.ts";
export { waitForMachine } from "#client/wait.ts";
export {
  type Crash,
  type Emulator,
  type EmulatorClock,
  type EmulatorOptions,
  startPlatform,
} from "./emulator.ts";
export type { Fault, Faults, HostFault, RequestFault, SetFault } from "./fault.ts";
