// Parts of the pages that the browser loads when they are first shown, so that the first script stays small.

import { signal } from "@preact/signals";
import type { ComponentType, JSX } from "preact";
import { useEffect } from "preact/hooks";
import { Button, Empty } from "./parts.tsx";

export interface Lazy<Props> {
  (props: Props): JSX.Element;
  /** Loads the code before it is shown. */
  load(): Promise<void>;
}

/** A component whose code is in a file of its own. */
export function lazy<Props extends object>(read: () => Promise<ComponentType<Props>>): Lazy<Props> {
  const found = signal<ComponentType<Props> | null>(null);
  const hasFailed = signal(false);
  const load = async () => {
    if (found.peek() !== null) return;
    hasFailed.value = false;
    try {
      found.value = await read();
    } catch {
      hasFailed.value = true;
    }
  };
  function Later(props: Props) {
    const Found = found.value;
    // A screen reader reads the title of a page. The title could not get the focus before the code of the page was loaded.
    const isLate = Found === null;
    useEffect(() => {
      if (isLate) void load();
      return () => {
        if (isLate) queueMicrotask(focusTitle);
      };
    }, [isLate]);
    if (Found !== null) return <Found {...props} />;
    if (!hasFailed.value) return <p class="unseen">Loading…</p>;
    return (
      <Empty title="This part of the page could not be loaded.">
        <p>The server may be away, or it may have another version since this page was opened.</p>
        <Button label="Load the page again" onClick={() => location.reload()} />
      </Empty>
    );
  }
  return Object.assign(Later, { load });
}

function focusTitle(): void {
  if (document.activeElement === document.body) document.getElementById("title")?.focus({ preventScroll: true });
}
