// Converts `ctx.progress(value)` for a heartbeat: a share from 0 to 1, a text for people, or both.

import { isObject, type Json } from "../../../core/json/json.ts";
import { cutMiddle } from "../../../core/text.ts";

export interface TaskProgress {
  readonly progress?: number;
  readonly statusMessage?: string;
}

/** Maximum length of the text: one line for people, which each heartbeat repeats. */
const messageCharsMax = 1_000;

/** `0.5`, `"half way"`, `{ progress: 0.5, message: "half way" }`, `{ percent: 50 }`; anything else is shown as JSON. */
export function progressOf(value: Json): TaskProgress {
  if (isShare(value)) return { progress: value };
  if (typeof value === "string") return { statusMessage: cutMiddle(value, messageCharsMax) };
  if (!isObject(value)) return { statusMessage: JSON.stringify(value) };
  const share = isShare(value.progress) ? value.progress : typeof value.percent === "number" ? value.percent / 100 : undefined;
  const text = [value.message, value.status].find((each) => typeof each === "string") as string | undefined;
  if (!isShare(share) && text === undefined) return { statusMessage: cutMiddle(JSON.stringify(value), messageCharsMax) };
  return {
    ...(isShare(share) ? { progress: share } : {}),
    ...(text === undefined ? {} : { statusMessage: cutMiddle(text, messageCharsMax) }),
  };
}

function isShare(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= 1;
}
