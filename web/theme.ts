import { Cell } from "./cell.ts";

const KEY = "hangar.theme";
export type Theme = "system" | "light" | "dark";

const stored = localStorage.getItem(KEY);
export const theme = new Cell<Theme>(stored === "light" || stored === "dark" ? stored : "system");

/** Whether the page is dark now: charts are drawn, and must know. */
export const isDark = (): boolean =>
  theme.value === "dark" || (theme.value === "system" && matchMedia("(prefers-color-scheme: dark)").matches);

export function setTheme(value: Theme): void {
  localStorage.setItem(KEY, value);
  theme.set(value);
  apply();
}

export function apply(): void {
  if (theme.value === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = theme.value;
}
