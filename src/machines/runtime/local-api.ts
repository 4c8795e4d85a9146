/**
 * The API inside a machine, at the unix socket `/.svc/api`. The identity module implements it; a driver
 * binds the folder to `/.svc`, read-only, so that the socket can be made anew after a restart of ours.
 */
export interface LocalApi {
  /** Creates the machine's directory and its socket `api` if missing. Returns the directory. */
  open(machine_id: string): Promise<string>;
  /** Closes open connections, because a frozen machine may hold none. New ones are accepted. */
  quiet(machine_id: string): Promise<void>;
  /** Removes the directory of a destroyed machine. */
  remove(machine_id: string): Promise<void>;
}
