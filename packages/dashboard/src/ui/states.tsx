// States of runs, steps and workers: always an icon, a word and a colour, so that each of them alone is enough.

import { Icon, type IconName } from "./icons.tsx";

/** `tone` names a colour of style.css. */
interface Look {
  readonly tone: "good" | "bad" | "busy" | "warn" | "calm" | "idle";
  readonly icon: IconName;
  readonly word: string;
}

const looks: Readonly<Record<string, Look>> = {
  running: { tone: "busy", icon: "play", word: "running" },
  paused: { tone: "warn", icon: "pause", word: "paused" },
  blocked: { tone: "warn", icon: "warn", word: "blocked" },
  succeeded: { tone: "good", icon: "check", word: "succeeded" },
  failed: { tone: "bad", icon: "cross", word: "failed" },
  cancelled: { tone: "calm", icon: "stop", word: "cancelled" },
  "timed-out": { tone: "bad", icon: "clock", word: "timed out" },
  waiting: { tone: "idle", icon: "dot", word: "not begun" },
  queued: { tone: "warn", icon: "clock", word: "queued" },
  sleeping: { tone: "idle", icon: "clock", word: "sleeping" },
  awaiting: { tone: "warn", icon: "signal", word: "awaiting" },
  offered: { tone: "warn", icon: "clock", word: "sent" },
  held: { tone: "busy", icon: "play", word: "working" },
  cancelling: { tone: "warn", icon: "stop", word: "cancelling" },
  done: { tone: "good", icon: "check", word: "done" },
  skipped: { tone: "calm", icon: "skip", word: "skipped" },
  idle: { tone: "good", icon: "dot", word: "idle" },
  busy: { tone: "busy", icon: "play", word: "busy" },
  unheard: { tone: "warn", icon: "clock", word: "unheard" },
  offline: { tone: "bad", icon: "cross", word: "offline" },
  started: { tone: "good", icon: "check", word: "started" },
  present: { tone: "good", icon: "check", word: "was there" },
  missed: { tone: "warn", icon: "warn", word: "missed" },
  kept: { tone: "warn", icon: "clock", word: "kept" },
  taken: { tone: "good", icon: "check", word: "taken" },
};

const unknown: Look = { tone: "calm", icon: "dot", word: "" };

export function lookOf(state: string): Look {
  return looks[state] ?? { ...unknown, word: state };
}

export function State({ state, label }: { state: string; label?: string }) {
  const { tone, icon, word } = lookOf(state);
  return (
    <span class={`state tone-${tone}`}>
      <Icon name={icon} />
      <span>{label ?? word}</span>
    </span>
  );
}

/** Runs that have ended. */
export function isOver(state: string): boolean {
  return state === "succeeded" || state === "failed" || state === "cancelled" || state === "timed-out";
}

export const runStates = ["running", "paused", "blocked", "succeeded", "failed", "timed-out", "cancelled"] as const;
