// Small things that every page uses.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import type { ApiError } from "../core/api.ts";
import { countText, durationText, now, relativeText, timeText } from "../core/format.ts";
import { exported } from "../core/place.ts";
import type { Action } from "../core/session.ts";
import { whyNot } from "../core/session.ts";
import { Icon, type IconName } from "./icons.tsx";

/** A relative time; the exact one on hover, on focus, and for a screen reader. */
export function Time({ at }: { at: number }) {
  const exact = timeText(at);
  const text = exported === null ? relativeText(at, now.value) : exact;
  return (
    <time dateTime={new Date(at).toISOString()} title={exact}>
      {text}
    </time>
  );
}

/** A duration; for something that has not ended, the duration until now. */
export function Elapsed({ from, to }: { from: number; to: number | null }) {
  return <span class="num">{durationText((to ?? now.value) - from)}</span>;
}

interface ButtonProps {
  readonly icon?: IconName;
  readonly label: string;
  readonly onClick: () => void;
  /** The action that the scope must allow. Without it, the button is grey and shows the reason. */
  readonly needs?: Action;
  /** Why it does nothing now. */
  readonly blocked?: string | undefined;
  readonly kind?: "main" | "danger" | "plain" | "icon";
  readonly pressed?: boolean;
  readonly hint?: string;
  readonly type?: "button" | "submit";
}

/** A button that cannot be used stays in the order of focus, so that its reason can be read. */
export function Button({ icon, label, onClick, needs, blocked, kind = "plain", pressed, hint, type = "button" }: ButtonProps) {
  const reason = blocked ?? (needs === undefined ? undefined : whyNot(needs));
  const title = reason ?? hint ?? (kind === "icon" ? label : undefined);
  return (
    <button
      type={type}
      class={`button ${kind}`}
      aria-disabled={reason !== undefined}
      aria-pressed={pressed}
      aria-label={kind === "icon" ? (reason === undefined ? label : `${label}. ${reason}`) : undefined}
      title={title}
      onClick={(event) => {
        if (reason === undefined) onClick();
        else event.preventDefault();
      }}
    >
      {icon !== undefined && <Icon name={icon} />}
      {kind !== "icon" && <span>{label}</span>}
      {kind !== "icon" && reason !== undefined && <span class="unseen">{reason}</span>}
    </button>
  );
}

export function Copy({ text, label = "Copy" }: { text: string; label?: string }) {
  const done = useSignal(false);
  const timer = useRef<ReturnType<typeof setTimeout>>(undefined);
  useEffect(() => () => clearTimeout(timer.current), []);
  const copy = async () => {
    await writeClipboard(text);
    done.value = true;
    clearTimeout(timer.current);
    timer.current = setTimeout(() => {
      done.value = false;
    }, 1_500);
  };
  return (
    <button type="button" class="button icon copy" aria-label={done.value ? "Copied" : label} title={label} onClick={() => void copy()}>
      <Icon name={done.value ? "check" : "copy"} />
    </button>
  );
}

/** Pages over plain HTTP from another machine have no access to the clipboard. */
export async function writeClipboard(text: string): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

/** A command with a button that copies it. */
export function Command({ text }: { text: string }) {
  return (
    <span class="command">
      <code tabIndex={0}>{text}</code>
      <Copy text={text} label={`Copy the command ${text}`} />
    </span>
  );
}

export function Empty({ title, children }: { title: string; children?: ComponentChildren }) {
  return (
    <div class="empty">
      <p class="empty-title">{title}</p>
      {children}
    </div>
  );
}

export function Problem({ error }: { error: ApiError | null }) {
  if (error === null) return null;
  return (
    <p class="problem" role="alert">
      <Icon name="warn" />
      <span>{error.message}</span>
    </p>
  );
}

interface TabsProps<Name extends string> {
  readonly label: string;
  readonly tabs: readonly { readonly name: Name; readonly title: string; readonly count?: number | undefined }[];
  readonly active: Name;
  readonly onPick: (name: Name) => void;
}

/** Arrow keys move between tabs, as in other programs. The panel of the tab has the id `panel-LABEL`. */
export function Tabs<Name extends string>({ label, tabs, active, onPick }: TabsProps<Name>) {
  const move = (event: KeyboardEvent) => {
    const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
    if (step === 0) return;
    event.preventDefault();
    const at = tabs.findIndex(({ name }) => name === active);
    const next = tabs[(at + step + tabs.length) % tabs.length];
    if (next === undefined) return;
    onPick(next.name);
    (event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("[role=tab]")[tabs.indexOf(next)]?.focus();
  };
  return (
    <div class="tabs" role="tablist" aria-label={label} onKeyDown={move}>
      {tabs.map(({ name, title, count }) => (
        <button
          key={name}
          type="button"
          role="tab"
          id={`tab-${name}`}
          aria-selected={name === active}
          tabIndex={name === active ? 0 : -1}
          onClick={() => onPick(name)}
        >
          {title}
          {count !== undefined && count > 0 && <span class="badge">{countText(count)}</span>}
        </button>
      ))}
    </div>
  );
}

export function Facts({ rows }: { rows: readonly (readonly [name: string, value: ComponentChildren] | null)[] }) {
  return (
    <dl class="facts">
      {rows.map((row) =>
        row === null ? null : (
          <div key={row[0]}>
            <dt>{row[0]}</dt>
            <dd>{row[1]}</dd>
          </div>
        ),
      )}
    </dl>
  );
}

/** The head of a page. The title gets the focus when the page is opened, so that a screen reader reads it. */
export function PageHead({ title, children, note }: { title: ComponentChildren; children?: ComponentChildren; note?: ComponentChildren }) {
  return (
    <header class="page-head">
      <div>
        <h1 id="title" tabIndex={-1}>
          {title}
        </h1>
        {note !== undefined && <p class="note">{note}</p>}
      </div>
      <div class="actions">{children}</div>
    </header>
  );
}
