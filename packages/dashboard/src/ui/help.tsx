// The keys of the page in view.

import { singleKeys } from "../core/prefs.ts";
import { Dialog } from "./dialog.tsx";
import { activeKeys } from "./keys.ts";

const ofLists = [
  ["j, ↓", "Next row of a list"],
  ["k, ↑", "Row before"],
  ["Enter", "Open the row"],
  ["Ctrl K, ⌘ K", "Search or do something"],
] as const;

export function Help() {
  const rows = [...ofLists, ...activeKeys().flatMap(({ keys, what }) => (keys.startsWith("-") ? [] : [[keys, what] as const]))];
  return (
    <Dialog title="Keys">
      {singleKeys.value === "off" && <p>Single keys are switched off in Settings.</p>}
      <dl class="keys">
        {rows.map(([keys, what]) => (
          <div key={keys}>
            <dt>
              <kbd>{keys}</kbd>
            </dt>
            <dd>{what}</dd>
          </div>
        ))}
      </dl>
    </Dialog>
  );
}
