import type { ComponentType } from "preact";
import type { PageProps } from "./page-props.ts";
import type { IconName } from "./parts/icon.ts";

export interface Page {
  id: string;
  title: string;
  icon: IconName;
  /** Loaded on first use. */
  load: () => Promise<{ Page: ComponentType<PageProps> }>;
}

/** Every page, in the order of the menu. */
export const PAGES: readonly Page[] = [
  { id: "overview", title: "Overview", icon: "overview", load: () => import("./pages/overview.ts") },
  { id: "machines", title: "Machines", icon: "machines", load: () => import("./pages/machines.ts") },
  { id: "apps", title: "Apps", icon: "apps", load: () => import("./pages/apps.ts") },
  { id: "services", title: "Services", icon: "services", load: () => import("./pages/services.ts") },
  { id: "volumes", title: "Volumes", icon: "volumes", load: () => import("./pages/volumes.ts") },
  { id: "images", title: "Images", icon: "images", load: () => import("./pages/images.ts") },
  { id: "activity", title: "Activity", icon: "activity", load: () => import("./pages/activity.ts") },
  { id: "metrics", title: "Metrics", icon: "metrics", load: () => import("./pages/metrics.ts") },
  { id: "alerts", title: "Alerts", icon: "alerts", load: () => import("./pages/alerts.ts") },
  { id: "databases", title: "Databases", icon: "replication", load: () => import("./pages/databases.ts") },
  { id: "connectors", title: "Connectors", icon: "connectors", load: () => import("./pages/connectors.ts") },
  { id: "identity", title: "Identity", icon: "identity", load: () => import("./pages/identity.ts") },
  { id: "hosts", title: "Hosts", icon: "hosts", load: () => import("./pages/hosts.ts") },
  { id: "tokens", title: "Tokens", icon: "tokens", load: () => import("./pages/tokens.ts") },
  { id: "settings", title: "Settings", icon: "settings", load: () => import("./pages/settings.ts") },
];
