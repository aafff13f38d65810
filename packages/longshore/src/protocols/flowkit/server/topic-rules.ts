// Which topics a worker may write to and read from. A sender of commands controls other workers. A reader of reports could keep them from
// the coordinator. So a worker's token may only write where workers write, and read where workers read.

import type { Caller } from "../../../core/actions.ts";
import { LongshoreError } from "../../../core/errors.ts";
import type { TopicNames } from "../wire/shapes.ts";

/** Throws LONGSHORE_UNAUTHORIZED that names the first topic that the caller may not use in this way. */
export function checkTopics(caller: Caller, verb: "publish" | "take", topics: Iterable<string>, names: TopicNames): void {
  if (caller.may("bus.lead")) return;
  const own = verb === "publish" ? [names.status, names.announce, names.reply] : [names.cmd, names.query, names.signals];
  for (const topic of topics) {
    if (own.some((pattern) => isOfTopic(pattern, topic))) continue;
    const message = `A worker's token may not ${verb} ${JSON.stringify(topic)}; expected ${own.join(", ")}, or a token of the scope operator.`;
    throw new LongshoreError("LONGSHORE_UNAUTHORIZED", message, { detail: { field: "topic", expected: own.join(", ") } });
  }
}

/** `{type}` in a name matches any type. */
export function isOfTopic(pattern: string, topic: string): boolean {
  const [head = "", ...tail] = pattern.split("{type}");
  if (tail.length === 0) return topic === pattern;
  const end = tail.at(-1) ?? "";
  return topic.length > head.length + end.length && topic.startsWith(head) && topic.endsWith(end);
}
