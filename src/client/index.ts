/** `@hangar-machines/hangar/client`: a typed client of the API, made from the same rows as the server. docs/client.md shows how. */
export type * from "./api.ts";
export {
  Client,
  ClientError,
  type ClientOptions,
  type ListItem,
  type ListRoute,
  type Outgoing,
} from "./client.ts";
export {
  openTerminal,
  type RemoteTerminal,
  type TerminalEnd,
  type TerminalOptions,
  type TerminalSize,
} from "./terminal.ts";
export { type WaitOptions, waitForMachine } from "./wait.ts";
