// The user of this tab, and the rights of the token.

import { effect, signal } from "@preact/signals";
import type { Action } from "../../../longshore/src/core/actions.ts";
import { call, request } from "./api.ts";
import { clockOffset } from "./format.ts";
import { exported } from "./place.ts";
import type { Health, Info, Whoami } from "./shapes.ts";

export type { Action };

export const whoami = signal<Whoami | null>(null);
export const info = signal<Info | null>(null);
export const health = signal<Health | null>(null);

const healthEveryMs = 10_000;

export async function openSession(): Promise<void> {
  if (exported !== null) return;
  void watchHealth();
  whoami.value = await call<Whoami>("/whoami");
  await readInfo();
}

export async function readInfo(): Promise<void> {
  const read = await call<Info>("/info");
  clockOffset.value = read.now - Date.now();
  info.value = read;
}

/** A sentence that says why the token does not allow an action; undefined when it does. */
export function whyNot(action: Action): string | undefined {
  if (exported !== null) return "This is an exported run: nothing can be changed here.";
  const known = whoami.value?.actions[action];
  if (known === undefined) return whoami.value === null ? undefined : "This server does not know this action.";
  if (known.may) return undefined;
  const { name, scopes } = whoami.value as Whoami;
  const has = scopes.length === 0 ? "no scope" : scopes.join(", ");
  return `This needs the scope ${known.needs}. Your token${name === null ? "" : ` ${name}`} has ${has}.`;
}

async function watchHealth(): Promise<void> {
  for (;;) {
    try {
      if (!document.hidden) health.value = await readHealth();
    } catch {
      health.value = null;
    }
    await new Promise((resolve) => setTimeout(resolve, healthEveryMs));
  }
}

/** The answer 503 also has a body, which says why nothing can be written. */
async function readHealth(): Promise<Health> {
  return (await (await request("root:/health")).json()) as Health;
}

effect(() => {
  const named = info.value?.host;
  if (named !== undefined && document.title === "Longshore") document.title = `Longshore on ${named}`;
});
