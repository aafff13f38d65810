// The address of the page as signals, and links that change it without loading a page. Everything that a user may share is in the address:
// filters, the selected step, the pane.

import { computed, signal } from "@preact/signals";
import { exported, pagesPath } from "./place.ts";

interface Address {
  readonly path: string;
  readonly search: string;
}

const address = signal<Address>(exported === null ? current() : { path: `/runs/${exported.run}`, search: "" });

function current(): Address {
  const { pathname, search } = location;
  const path = pathname.startsWith(pagesPath) ? pathname.slice(pagesPath.length) : "";
  return { path: path === "" ? "/" : path, search };
}

/** Decoded segments, such as `["runs", "some id"]`. */
export const segments = computed(() =>
  address.value.path
    .split("/")
    .filter((part) => part !== "")
    .map(decoded),
);
export const search = computed(() => new URLSearchParams(address.value.search));

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

type Query = Readonly<Record<string, string | null | undefined>>;

/** The address of a page, such as `href(["runs", id], { step })`. */
export function href(path: readonly string[], given: Query = {}): string {
  const parts = path.map(encodeURIComponent).join("/");
  const kept = Object.entries(given).filter(
    (entry): entry is [string, string] => entry[1] !== undefined && entry[1] !== null && entry[1] !== "",
  );
  const text = kept.length === 0 ? "" : `?${new URLSearchParams(kept)}`;
  return `${pagesPath}${parts === "" ? "" : `/${parts}`}${text}`;
}

export function go(to: string, { replace = false } = {}): void {
  const [path = "", text = ""] = to.split("?");
  const next: Address = {
    path: path.startsWith(pagesPath) ? path.slice(pagesPath.length) || "/" : path,
    search: text === "" ? "" : `?${text}`,
  };
  // A file on a disk has no addresses below it.
  if (exported === null) history[replace ? "replaceState" : "pushState"](null, "", to);
  const isOtherPage = next.path !== address.value.path;
  address.value = next;
  if (isOtherPage) {
    scrollTo(0, 0);
    queueMicrotask(() => document.getElementById("title")?.focus({ preventScroll: true }));
  }
}

/** Changes some values of the query; null removes one. Replaces the address, so that Back leads to the page before. */
export function setQuery(changes: Query, { push = false } = {}): void {
  const next = new URLSearchParams(address.value.search);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null || value === undefined || value === "") next.delete(name);
    else next.set(name, value);
  }
  const text = next.toString();
  go(`${pagesPath}${address.value.path === "/" ? "" : address.value.path}${text === "" ? "" : `?${text}`}`, { replace: !push });
}

/** Follows links to pages here, except where the user wants another tab. */
export function followLinks(): void {
  addEventListener("popstate", () => {
    address.value = current();
  });
  document.addEventListener("click", (event) => {
    if (event.defaultPrevented || event.button !== 0 || event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    const link = (event.target as Element | null)?.closest?.("a[href]");
    const to = link?.getAttribute("href");
    if (!to || link?.hasAttribute("download") || link?.getAttribute("target") === "_blank") return;
    if (to !== pagesPath && !to.startsWith(`${pagesPath}/`) && !to.startsWith(`${pagesPath}?`)) return;
    event.preventDefault();
    go(to);
  });
}
