// Components that need only their input: noop, sleep and create_messages.

import type { Clock } from "../../../../core/clock.ts";
import { pause } from "../../../../core/clock.ts";
import type { Json } from "../../../../core/json/json.ts";
import { type Component, invalid, objectIn, objectSchema, optionalText, optionalWhole, textIn } from "./component.ts";

export const noop: Component = {
  path: "/noop",
  description: "Returns its input unchanged.",
  inputSchema: {},
  outputSchema: {},
  perform: ({ input }) => input,
};

export const createMessages: Component = {
  path: "/create_messages",
  description: "Makes a list of chat messages from system instructions and a user prompt.",
  inputSchema: objectSchema(
    "CreateMessagesInput",
    {
      system_instructions: { type: ["string", "null"], description: "The system instructions for the model." },
      user_prompt: { type: "string", description: "The prompt of the user." },
    },
    ["user_prompt"],
  ),
  outputSchema: objectSchema("CreateMessagesOutput", { messages: { type: "array", items: { type: "object" } } }, ["messages"]),
  perform(call) {
    const instructions = optionalText(call, "system_instructions");
    const user = { role: "user", content: textIn(call, "user_prompt") };
    return { messages: instructions === undefined ? [user] : [{ role: "system", content: instructions }, user] };
  },
};

/** A month. Longer waits belong in a scheduler. */
const sleepMsMax = 31 * 24 * 3_600_000;

export function sleep(clock: Clock): Component {
  return {
    path: "/sleep",
    description: "Waits for a time, then returns.",
    inputSchema: objectSchema(
      "SleepInput",
      { duration_ms: { type: "integer", minimum: 0, maximum: sleepMsMax }, passthrough: { description: "Returned unchanged." } },
      ["duration_ms"],
    ),
    outputSchema: objectSchema("SleepOutput", { duration_ms: { type: "integer" }, passthrough: {} }, ["duration_ms"]),
    async perform(call): Promise<Json> {
      const durationMs = optionalWhole(call, "duration_ms", 0, sleepMsMax);
      if (durationMs === undefined) throw invalid(call, "duration_ms is missing, expected a whole number");
      const { passthrough } = objectIn(call);
      // Counts from the first start of the step, so the time before a restart counts too.
      const until = (call.task.startedAt ?? clock.now()) + durationMs;
      await call.lend(() => pause(clock, until - clock.now(), call.signal));
      return { duration_ms: durationMs, ...(passthrough === undefined ? {} : { passthrough }) };
    },
  };
}
