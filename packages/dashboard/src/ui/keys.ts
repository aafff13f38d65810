// Keys of the pages. Single keys can be switched off (WCAG 2.1.4), and never do anything while the user types.

import { useEffect } from "preact/hooks";
import { singleKeys } from "../core/prefs.ts";
import { isDialogOpen } from "./dialog.tsx";

export interface Key {
  /** Such as `j`, `Escape`, or two keys in a row: `g r`. */
  readonly keys: string;
  readonly what: string;
  readonly act: () => void;
}

const active: Key[][] = [];
let first = "";
let timer: ReturnType<typeof setTimeout> | undefined;

/** The keys of the shown pages; those of the newest page come first. */
export function useKeys(list: readonly Key[]): void {
  useEffect(() => {
    const own = [...list];
    active.unshift(own);
    return () => void active.splice(active.indexOf(own), 1);
  });
}

export function activeKeys(): readonly Key[] {
  const seen = new Set<string>();
  return active.flat().filter(({ keys }) => !seen.has(keys) && seen.add(keys));
}

export function listenToKeys(): void {
  addEventListener("keydown", (event) => {
    if (event.defaultPrevented || event.metaKey || event.ctrlKey || event.altKey || isTyping(event.target)) return;
    if (isDialogOpen() || document.querySelector("dialog[open]") !== null) return;
    const isSingle = event.key.length === 1;
    if (isSingle && singleKeys.value === "off") return;
    // Buttons and tabs use these keys themselves.
    if ((event.key === "Enter" || event.key === " ") && (event.target as Element | null)?.closest("a,button,summary,[role=tab]")) return;
    const both = first === "" ? event.key : `${first} ${event.key}`;
    const found = find(both) ?? find(event.key);
    first = "";
    clearTimeout(timer);
    if (found !== undefined) {
      event.preventDefault();
      found.act();
    } else if (event.key === "g") {
      first = "g";
      timer = setTimeout(() => {
        first = "";
      }, 1_500);
    }
  });
}

function find(keys: string): Key | undefined {
  return active.flat().find((key) => key.keys === keys);
}

function isTyping(target: EventTarget | null): boolean {
  const element = target as HTMLElement | null;
  return element?.closest?.("input,textarea,select,[contenteditable]") !== null && element !== document.body;
}
