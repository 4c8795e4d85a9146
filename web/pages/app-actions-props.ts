import type { AppStatus } from "./app-tab.ts";

export interface ActionDialogProps {
  app_name: string;
  status: AppStatus;
  onClose: () => void;
}
