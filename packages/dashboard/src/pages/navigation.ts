// The pages of the navigation, in order. Only pages that exist are listed.

import type { IconName } from "../ui/icons.tsx";

export interface NavigationEntry {
  /** The first segment of its address; empty for the first page. */
  readonly path: string;
  readonly title: string;
  readonly icon: IconName;
  /** After `g`. */
  readonly key: string;
}

export const navigation: readonly NavigationEntry[] = [
  { path: "", title: "Overview", icon: "overview", key: "o" },
  { path: "runs", title: "Runs", icon: "runs", key: "r" },
  { path: "workflows", title: "Workflows", icon: "workflows", key: "w" },
  { path: "queues", title: "Queues", icon: "queues", key: "q" },
  { path: "workers", title: "Workers", icon: "workers", key: "k" },
  { path: "dead-letters", title: "Dead letters", icon: "letters", key: "d" },
  { path: "schedules", title: "Schedules", icon: "schedules", key: "s" },
  { path: "settings", title: "Settings", icon: "settings", key: "e" },
];
