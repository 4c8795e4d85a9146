/**
 * The API inside a machine, at the unix socket `/.svc/api`. The identity module implements it; a driver
 * binds the folder to `/.svc`, read-only, so that the socket can be made anew after a restart of ours.
 */
export interface LocalApi {
  /** Makes the machine's folder and the socket `api` in it, if they are not there. Answers the folder. */
  open(machine_id: string): Promise<string>;
  /** Ends the connections that are open, because a frozen machine may hold none. New ones are taken. */
  quiet(machine_id: string): Promise<void>;
  /** Removes the folder; the machine is gone. */
  remove(machine_id: string): Promise<void>;
}
