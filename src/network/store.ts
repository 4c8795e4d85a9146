import type { IpAssignment } from "./types.ts";

export interface ExposedApp {
  id: string;
  name: string;
  org_id: string;
  created_at: number;
}

/** Stores addresses of apps; decides nothing. Implemented in stores/, tested by `store.suite.ts`. */
export interface AddressStore {
  /** Every app that has an address. */
  exposed(): Promise<ExposedApp[]>;
  /** Of one app, or of all, oldest first. */
  assignments(app_id?: string): Promise<IpAssignment[]>;
  /** Writes it unless the app has `limit` already or this very address, or another app has it exclusively. */
  insertAssignment(
    assignment: IpAssignment,
    limit: number,
  ): Promise<"inserted" | "exists" | "taken" | "limit" | "no_app">;
  /** Returns false when the app has no such address. */
  deleteAssignment(app_id: string, ip: string): Promise<boolean>;
}
