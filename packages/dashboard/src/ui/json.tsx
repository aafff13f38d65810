// A JSON value as a tree that opens step by step, or as text. Only opened parts are in the document; long lists open in parts.

import { useSignal } from "@preact/signals";
import { Digits } from "../core/exact-json.ts";
import { bytesText, countText } from "../core/format.ts";
import { Button, Copy } from "./parts.tsx";

/** Entries of one object or list that are shown at once. */
const portion = 100;
/** Characters of one text that are shown at once. */
const textPortion = 2_000;

export function Json({ value, name }: { value: unknown; name: string }) {
  const isRaw = useSignal(false);
  if (value === undefined) return <p class="dim">Nothing yet.</p>;
  const isPlain = value === null || typeof value !== "object";
  const text = isRaw.value || isPlain ? JSON.stringify(value, null, 2) : "";
  return (
    <div role="group" class="json" aria-label={name}>
      <div class="json-head">
        <h2>{name}</h2>
        {!isPlain && (
          <Button
            label="As text"
            pressed={isRaw.value}
            onClick={() => {
              isRaw.value = !isRaw.value;
            }}
          />
        )}
        <CopyJson value={value} name={name} />
      </div>
      {isRaw.value ? <Long text={text} /> : <Value value={value} depth={0} />}
    </div>
  );
}

function CopyJson({ value, name }: { value: unknown; name: string }) {
  return <Copy text={JSON.stringify(value, null, 2)} label={`Copy ${name}`} />;
}

function Long({ text }: { text: string }) {
  const shown = useSignal(textPortion);
  return (
    <>
      <pre tabIndex={0}>{text.slice(0, shown.value)}</pre>
      {text.length > shown.value && (
        <Button
          label={`Show more of ${bytesText(text.length)}`}
          onClick={() => {
            shown.value *= 10;
          }}
        />
      )}
    </>
  );
}

function Value({ value, depth }: { value: unknown; depth: number }) {
  if (value === null) return <span class="json-null">null</span>;
  if (typeof value === "string") return <Text text={value} />;
  if (value instanceof Digits) return <span class="json-number">{value.text}</span>;
  if (typeof value !== "object") return <span class={`json-${typeof value}`}>{String(value)}</span>;
  return <Branch value={value as object} depth={depth} />;
}

function Text({ text }: { text: string }) {
  const shown = useSignal(textPortion);
  const rest = text.length - shown.value;
  return (
    <span class="json-string">
      {JSON.stringify(rest > 0 ? text.slice(0, shown.value) : text)}
      {rest > 0 && (
        <button
          type="button"
          class="button link"
          onClick={() => {
            shown.value *= 10;
          }}
        >
          … {bytesText(rest)} more
        </button>
      )}
    </span>
  );
}

function Branch({ value, depth }: { value: object; depth: number }) {
  const isList = Array.isArray(value);
  const keys = Object.keys(value);
  const isOpen = useSignal(depth < 2 && keys.length <= 30);
  const shown = useSignal(portion);
  const [open, close] = isList ? ["[", "]"] : ["{", "}"];
  if (keys.length === 0) return <span class="json-mark">{open + close}</span>;
  const size = isList ? `${countText(keys.length)} items` : `${countText(keys.length)} fields`;
  return (
    <span class="json-branch">
      <button
        type="button"
        class="json-toggle"
        aria-expanded={isOpen.value}
        aria-label={isOpen.value ? `Close ${size}` : `Open ${size}`}
        onClick={() => {
          isOpen.value = !isOpen.value;
        }}
      >
        <span aria-hidden="true">{isOpen.value ? "▾" : "▸"}</span>
      </button>
      <span class="json-mark">{open}</span>
      {!isOpen.value && <span class="dim"> {size} </span>}
      {isOpen.value && (
        <ul class="json-list">
          {keys.slice(0, shown.value).map((key) => (
            <li key={key}>
              {!isList && <span class="json-key">{key}: </span>}
              {isList && <span class="json-index">{key} </span>}
              <Value value={(value as Record<string, unknown>)[key]} depth={depth + 1} />
            </li>
          ))}
          {keys.length > shown.value && (
            <li>
              <button
                type="button"
                class="button link"
                onClick={() => {
                  shown.value += portion * 5;
                }}
              >
                {countText(keys.length - shown.value)} more
              </button>
            </li>
          )}
        </ul>
      )}
      <span class="json-mark">{close}</span>
    </span>
  );
}
