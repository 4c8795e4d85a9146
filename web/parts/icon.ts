import type { VNode } from "preact";
import { path, svg } from "../html.ts";

/** On a 16 × 16 grid, in the text colour. */
const PATHS = {
  overview: "M2 9l6-6 6 6M4 7.5V13h8V7.5",
  machines: "M2.5 3.5h11v4h-11zM2.5 8.5h11v4h-11zM5 5.5h.01M5 10.5h.01",
  apps: "M3 3h4v4H3zM9 3h4v4H9zM3 9h4v4H3zM9 9h4v4H9z",
  activity: "M1.5 8h3l2-5 3 10 2-5h3",
  metrics: "M2.5 2.5v11h11M5 10l2.5-3 2 2L13 5",
  alerts: "M4 11V7a4 4 0 018 0v4l1.5 1.5h-11zM6.8 14.2h2.4",
  hosts: "M8 1.8l5.5 3v6.4L8 14.2l-5.5-3V4.8zM2.5 4.8L8 7.8l5.5-3M8 7.8v6.4",
  volumes:
    "M3 4c0-1.1 2.2-2 5-2s5 .9 5 2-2.2 2-5 2-5-.9-5-2zM3 4v8c0 1.1 2.2 2 5 2s5-.9 5-2V4M3 8c0 1.1 2.2 2 5 2s5-.9 5-2",
  services: "M8 2v12M2 8h12M8 2c-4 4-4 8 0 12M8 2c4 4 4 8 0 12M14 8A6 6 0 112 8a6 6 0 0112 0z",
  connectors:
    "M6 10L4.5 11.5a2.5 2.5 0 01-3.5-3.5L3.5 5.5a2.5 2.5 0 013.5 0M10 6l1.5-1.5a2.5 2.5 0 013.5 3.5l-2.5 2.5a2.5 2.5 0 01-3.5 0M6 10l4-4",
  identity: "M8 8a2.5 2.5 0 100-5 2.5 2.5 0 000 5zM3 13.5c.5-2.5 2.5-4 5-4s4.5 1.5 5 4",
  tokens: "M10.5 9a3.5 3.5 0 10-3.3-2.3L2 12v2h2.5v-1.5H6V11l1.8-1.8c.8.5 1.7.8 2.7.8zM11 5.5h.01",
  images: "M2.5 5.5L8 3l5.5 2.5L8 8zM2.5 8L8 10.5 13.5 8M2.5 10.5L8 13l5.5-2.5",
  replication:
    "M4 5.5A1.5 1.5 0 104 2.5a1.5 1.5 0 000 3zM12 13.5a1.5 1.5 0 100-3 1.5 1.5 0 000 3zM4 13.5a1.5 1.5 0 100-3 1.5 1.5 0 000 3zM4 5.5v5M5.5 4H9a3 3 0 013 3v3.5",
  settings:
    "M8 10a2 2 0 100-4 2 2 0 000 4zM8 1.5v2M8 12.5v2M1.5 8h2M12.5 8h2M3.4 3.4l1.4 1.4M11.2 11.2l1.4 1.4M12.6 3.4l-1.4 1.4M4.8 11.2l-1.4 1.4",
  plus: "M8 3v10M3 8h10",
  search: "M7 11.5a4.5 4.5 0 100-9 4.5 4.5 0 000 9zM10.5 10.5L14 14",
  copy: "M5.5 5.5h7v8h-7zM3.5 10.5v-8h7",
  close: "M4 4l8 8M12 4l-8 8",
  menu: "M2.5 4.5h11M2.5 8h11M2.5 11.5h11",
  check: "M3 8.5l3.5 3.5L13 4.5",
  arrow: "M6 3.5L10.5 8 6 12.5",
  theme: "M13.5 9.5A6 6 0 016.5 2.5a6 6 0 107 7z",
  exit: "M9.5 3.5H13v9H9.5M10 8H2.5M5.5 5l-3 3 3 3",
} as const;

export type IconName = keyof typeof PATHS;

/** Decorative; a button with only an icon has a label. */
export function icon(name: IconName): VNode {
  return svg(
    { class: "icon", viewBox: "0 0 16 16", width: 16, height: 16, "aria-hidden": "true", focusable: "false" },
    path({ d: PATHS[name] }),
  );
}
