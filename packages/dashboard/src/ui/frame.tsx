// The frame of every page: navigation, the state of the connection, search.

import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { isReachable } from "../core/api.ts";
import { now, relativeText, timeText } from "../core/format.ts";
import { liveState, lostAt } from "../core/live.ts";
import { exported } from "../core/place.ts";
import { theme, themes } from "../core/prefs.ts";
import { href, segments } from "../core/router.ts";
import { health, info } from "../core/session.ts";
import { navigation } from "../pages/navigation.ts";
import { Icon } from "./icons.tsx";
import { openPalette } from "./palette.tsx";
import { Button } from "./parts.tsx";

export function Frame({ children }: { children: ComponentChildren }) {
  const isOpen = useSignal(false);
  const current = segments.value[0] ?? "";
  if (exported !== null) return <ExportFrame>{children}</ExportFrame>;
  return (
    <div class="frame">
      <a class="skip" href="#main">
        Skip to the page
      </a>
      <nav aria-label="Pages" data-open={isOpen.value}>
        <a class="brand" href={href([])}>
          <svg viewBox="0 0 32 32" aria-hidden="true">
            <rect width="32" height="32" rx="7" />
            <path d="M6 21c4-4 6-4 10 0s6 4 10 0M6 14c4-4 6-4 10 0s6 4 10 0" />
          </svg>
          <span>Longshore</span>
        </a>
        <ul>
          {navigation.map(({ path, title, icon, key }) => (
            <li key={path}>
              <a
                href={href(path === "" ? [] : [path])}
                aria-current={path === current ? "page" : undefined}
                title={`${title} (g ${key})`}
                onClick={() => {
                  isOpen.value = false;
                }}
              >
                <Icon name={icon} />
                <span>{title}</span>
              </a>
            </li>
          ))}
        </ul>
        <div class="nav-foot">
          <Connection />
        </div>
      </nav>
      <div class="content">
        <header class="bar">
          <span class="menu">
            <Button
              kind="icon"
              icon="menu"
              label="Pages"
              pressed={isOpen.value}
              onClick={() => {
                isOpen.value = !isOpen.value;
              }}
            />
          </span>
          <button type="button" class="search-button" onClick={openPalette}>
            <Icon name="search" />
            <span>Search or do something</span>
            <kbd>{/Mac|iPhone|iPad/.test(navigator.userAgent) ? "⌘" : "Ctrl"} K</kbd>
          </button>
          <span class="server" title="This server">
            {info.value === null ? "" : `${info.value.host} · ${info.value.version}`}
          </span>
          <ThemeButton />
        </header>
        <Banner />
        <main id="main" tabIndex={-1}>
          {children}
        </main>
      </div>
    </div>
  );
}

function ThemeButton() {
  const next = themes[(themes.indexOf(theme.value) + 1) % themes.length] as (typeof themes)[number];
  return (
    <Button
      kind="icon"
      icon="sun"
      label={`Theme: ${theme.value}. Switch to ${next}`}
      onClick={() => {
        theme.value = next;
      }}
    />
  );
}

const connections = {
  live: ["good", "Live"],
  connecting: ["idle", "Connecting"],
  lost: ["bad", "Connection lost"],
  resting: ["idle", "Resting"],
} as const;

function Connection() {
  const [tone, text] = connections[isReachable.value ? liveState.value : "lost"];
  return (
    <span class={`connection tone-${tone}`} role="status">
      <Icon name="dot" />
      <span>{text}</span>
    </span>
  );
}

/** Messages for every page: the server does not answer, or cannot store anything. */
function Banner() {
  if (liveState.value === "lost" || !isReachable.value) {
    const since = lostAt.value ?? now.value;
    return (
      <p class="banner tone-bad" role="alert">
        <Icon name="warn" />
        <span>
          The server does not answer. What you see is from {timeText(since, { withDate: false })}; this page connects again by itself.
        </span>
      </p>
    );
  }
  if (health.value?.status !== "unavailable") return null;
  return (
    <p class="banner tone-bad" role="alert">
      <Icon name="warn" />
      <span>The server cannot store anything: {health.value.message ?? "its data file cannot be written"}.</span>
    </p>
  );
}

function ExportFrame({ children }: { children: ComponentChildren }) {
  const { at = 0, server = "" } = exported ?? {};
  return (
    <div class="frame export">
      <div class="content">
        <header class="bar">
          <strong>Longshore</strong>
          <span class="server">
            A run of {server}, as it was on {timeText(at)} ({relativeText(at, now.value)})
          </span>
          <ThemeButton />
        </header>
        <main id="main" tabIndex={-1}>
          {children}
        </main>
      </div>
    </div>
  );
}
