// The preferences that this browser stores: theme, time zone, and whether single keys have an effect.

import { effect, signal } from "@preact/signals";

function remembered<Value extends string>(name: string, values: readonly Value[]) {
  const key = `longshore.${name}`;
  const found = read(key);
  const kept = signal<Value>(values.find((value) => value === found) ?? (values[0] as Value));
  effect(() => write(key, kept.value));
  return kept;
}

/** In some browsers an exported file has no access to storage. */
function read(key: string): string | null {
  try {
    return localStorage.getItem(key);
  } catch {
    return null;
  }
}

function write(key: string, value: string): void {
  try {
    localStorage.setItem(key, value);
  } catch {
    // The choice then lasts as long as the page.
  }
}

export const themes = ["system", "light", "dark"] as const;
export const theme = remembered("theme", themes);
export const zone = remembered("zone", ["local", "utc"] as const);
export const singleKeys = remembered("keys", ["on", "off"] as const);

export function applyTheme(): void {
  effect(() => {
    document.documentElement.style.colorScheme = theme.value === "system" ? "light dark" : theme.value;
  });
}
