export interface App {
  id: string;
  name: string;
  org_id: string;
  numeric_id: number;
  /** Machines of one organization and network reach each other. */
  network: string;
  /** Incremented with every change of the app's secrets. */
  secrets_version: number;
  created_at: number;
}

export interface Secret {
  name: string;
  sealed: Uint8Array;
  digest: string;
  created_at: number;
  updated_at: number;
}
