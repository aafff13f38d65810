// The query of the runs, with suggestions for its keys.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { keys } from "../core/run-query.ts";
import { Icon } from "../ui/icons.tsx";

interface QueryBoxProps {
  readonly value: string;
  readonly onChange: (text: string) => void;
}

/** The time after the last letter until the query is sent. */
const waitMs = 350;

export function QueryBox({ value, onChange }: QueryBoxProps) {
  const text = useSignal(value);
  const isOpen = useSignal(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => {
    text.value = value;
  }, [value, text]);
  useEffect(() => () => clearTimeout(timer.current), []);
  const change = (next: string) => {
    text.value = next;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => onChange(next.trim()), waitMs);
  };
  const last = text.value.slice(text.value.lastIndexOf(" ") + 1);
  const suggested = Object.entries(keys).filter(([key]) => key.startsWith(last) && !last.includes(":"));
  return (
    <search class="query">
      <form
        onSubmit={(event) => {
          event.preventDefault();
          clearTimeout(timer.current);
          isOpen.value = false;
          onChange(text.value.trim());
        }}
      >
        <Icon name="search" />
        <input
          id="query"
          type="search"
          aria-label="Query of the runs"
          aria-describedby="query-note"
          placeholder="state:failed workflow:billing after:2h input.customer:17 or any text"
          autocomplete="off"
          spellcheck={false}
          value={text.value}
          onInput={(event) => change(event.currentTarget.value)}
          onFocus={() => {
            isOpen.value = true;
          }}
          onBlur={() => {
            isOpen.value = false;
          }}
          onKeyDown={(event) => {
            if (event.key !== "Escape") return;
            isOpen.value = false;
            event.currentTarget.blur();
          }}
        />
      </form>
      <span id="query-note" class="unseen">
        Keys are {Object.keys(keys).join(", ")}. Any other text is searched for in all runs.
      </span>
      {isOpen.value && suggested.length > 0 && (
        <ul class="suggestions" aria-hidden="true">
          {suggested.map(([key, { what, scans }]) => (
            <li
              key={key}
              onPointerDown={(event) => {
                event.preventDefault();
                text.value = text.value.slice(0, text.value.length - last.length) + (key.endsWith(".") ? key : `${key}:`);
              }}
            >
              <code>{key.endsWith(".") ? key : `${key}:`}</code>
              <span>{what}</span>
              <span class="dim">{scans ? "looks at every run" : "fast"}</span>
            </li>
          ))}
        </ul>
      )}
    </search>
  );
}
