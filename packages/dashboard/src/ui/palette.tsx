// The command palette: pages, actions of the page in view, workflows, and runs by id or alias.

import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { call, query } from "../core/api.ts";
import { go, href } from "../core/router.ts";
import type { Definition, Page, RunList } from "../core/shapes.ts";
import { navigation } from "../pages/navigation.ts";
import { closeDialog, openDialog, useModal } from "./dialog.tsx";
import { Icon, type IconName } from "./icons.tsx";
import { activeKeys } from "./keys.ts";

interface Item {
  readonly key: string;
  readonly title: string;
  readonly note: string;
  readonly icon: IconName;
  readonly act: () => void;
}

const shownMax = 12;
/** With fewer characters than this, no request is sent. */
const searchedFrom = 2;

export function openPalette(): void {
  openDialog(() => <Palette />);
}

function Palette() {
  const element = useRef<HTMLDialogElement>(null);
  const text = useSignal("");
  const active = useSignal(0);
  const found = useSignal<readonly Item[]>([]);
  const close = useModal(element);
  useEffect(() => {
    const wanted = text.value.trim();
    found.value = [];
    if (wanted.length < searchedFrom) return;
    const controller = new AbortController();
    const timer = setTimeout(() => {
      void searched(wanted, controller.signal).then(
        (items) => {
          if (!controller.signal.aborted) found.value = items;
        },
        () => {},
      );
    }, 150);
    return () => {
      clearTimeout(timer);
      controller.abort();
    };
  }, [text.value]);
  const items = [...local(text.value), ...found.value].slice(0, shownMax);
  const at = Math.min(active.value, items.length - 1);
  const choose = (item: Item | undefined) => {
    if (item === undefined) return;
    closeDialog();
    item.act();
  };
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "ArrowDown") active.value = Math.min(items.length - 1, at + 1);
    else if (event.key === "ArrowUp") active.value = Math.max(0, at - 1);
    else if (event.key === "Enter") choose(items[at]);
    else return;
    event.preventDefault();
  };
  return (
    <dialog
      ref={element}
      class="palette"
      aria-label="Search or do something"
      onClose={close}
      onClick={(event) => {
        if (event.target === element.current) closeDialog();
      }}
    >
      <div class="palette-input">
        <Icon name="search" />
        <input
          role="combobox"
          aria-label="A page, an action, a workflow, or the id of a run"
          aria-expanded={items.length > 0}
          aria-controls="palette-list"
          aria-activedescendant={items[at] === undefined ? undefined : `palette-${at}`}
          placeholder="A page, an action, a workflow, or the id of a run"
          autocomplete="off"
          spellcheck={false}
          value={text.value}
          onInput={(event) => {
            text.value = event.currentTarget.value;
            active.value = 0;
          }}
          onKeyDown={onKey}
        />
      </div>
      {items.length === 0 && <p class="dim palette-none">Nothing found.</p>}
      <ul id="palette-list" role="listbox" aria-label="Results">
        {items.map((item, index) => (
          <li key={item.key} id={`palette-${index}`} role="option" aria-selected={index === at} tabIndex={-1} onClick={() => choose(item)}>
            <Icon name={item.icon} />
            <span>{item.title}</span>
            <span class="dim">{item.note}</span>
          </li>
        ))}
      </ul>
    </dialog>
  );
}

/** Pages, and the actions of the page. */
function local(text: string): Item[] {
  const pages = navigation.map(
    ({ path, title, icon, key }): Item => ({
      key: `page ${path}`,
      title,
      note: `g ${key}`,
      icon,
      act: () => go(href(path === "" ? [] : [path])),
    }),
  );
  const actions = activeKeys()
    .filter(({ keys }) => !keys.startsWith("g ") && keys.length > 0)
    .map(
      ({ keys, what, act }): Item => ({ key: `action ${keys}`, title: what, note: keys.startsWith("-") ? "" : keys, icon: "right", act }),
    );
  const words = text.toLowerCase().split(" ").filter(Boolean);
  return [...actions, ...pages].filter(({ title }) => words.every((word) => isFuzzy(title.toLowerCase(), word)));
}

/** All characters of the word, in their order. */
function isFuzzy(title: string, word: string): boolean {
  let at = 0;
  for (const letter of word) {
    at = title.indexOf(letter, at) + 1;
    if (at === 0) return false;
  }
  return true;
}

async function searched(text: string, gone: AbortSignal): Promise<Item[]> {
  const runItem = (id: string, title: string, note: string): Item => ({
    ...{ key: `run ${id}`, title, note, icon: "runs" },
    act: () => go(href(["runs", id])),
  });
  const [definitions, byAlias, byId] = await Promise.allSettled([
    call<Page<Definition>>("/definitions?limit=1000", { signal: gone }),
    call<RunList>(`/runs${query({ view: "summary", limit: 5, alias: text })}`, { signal: gone }),
    /^[0-9a-z-]{8,}$/i.test(text)
      ? call<{ id: string; workflow: string }>(`/runs/${encodeURIComponent(text)}`, { signal: gone })
      : undefined,
  ]);
  const runs = [
    ...(byId.status === "fulfilled" && byId.value ? [runItem(byId.value.id, byId.value.workflow, byId.value.id)] : []),
    ...(byAlias.status === "fulfilled" ? byAlias.value.items.map(({ id, workflow, alias }) => runItem(id, workflow, alias ?? id)) : []),
  ];
  const wanted = text.toLowerCase();
  const workflows =
    definitions.status === "fulfilled" ? definitions.value.items.filter(({ name }) => name.toLowerCase().includes(wanted)) : [];
  return [
    ...runs,
    ...workflows.slice(0, 5).map(
      ({ name, dialect }): Item => ({
        ...{ key: `workflow ${name}`, title: name, note: `workflow, ${dialect}`, icon: "workflows" },
        act: () => go(href(["workflows", name])),
      }),
    ),
    {
      ...{ key: "search runs", title: `Search all runs for “${text}”`, note: "", icon: "search" },
      act: () => go(href(["runs"], { q: /\s/.test(text) ? JSON.stringify(text) : text })),
    },
  ];
}
