// Parses a mock plugin: components with configured results, each under its input. In YAML the input may be the key itself, `{ input: a }:
// ...`. In JSON, where keys are texts, the key is the input as JSON.

import { fields, mapOf, required, textOf } from "../../../../core/file-fields.ts";
import type { Place } from "../../../../core/file-place.ts";
import type { Json } from "../../../../core/json/json.ts";
import type { MockAnswer, MockComponent, MockPlugin } from "./config.ts";
import { withSlash } from "./route.ts";

const anyObject: Json = { type: "object" };

export function mockPlugin(name: string, place: Place): MockPlugin {
  const given = fields(place, ["type", "components"]);
  const components = new Map<string, MockComponent>();
  const listed = given.get("components");
  if (listed !== undefined) {
    for (const { key, value } of mapOf(listed, "a map of components").entries()) components.set(withSlash(key), componentOf(value));
  }
  return { name, type: "mock", components };
}

function componentOf(place: Place): MockComponent {
  const given = fields(mapOf(place, "a map with behaviors"), ["input_schema", "output_schema", "behaviors"]);
  const behaviors = given.get("behaviors");
  return {
    inputSchema: given.get("input_schema")?.json() ?? anyObject,
    outputSchema: given.get("output_schema")?.json() ?? anyObject,
    behaviors:
      behaviors === undefined
        ? []
        : mapOf(behaviors, "a map from inputs to answers")
            .pairs()
            .map(({ key, value }) => ({ input: inputOf(key), answer: answerOf(value) })),
  };
}

/** A text that is JSON means its value; any other text means itself. */
function inputOf(key: Place): Json {
  const value = key.json();
  if (typeof value !== "string") return value;
  try {
    return JSON.parse(value) as Json;
  } catch {
    // Not JSON: the input is the text itself.
    return value;
  }
}

const answerForm = "{outcome: success, result: ...}, {outcome: failed, error: {code, message}} or {error: a text}";

function answerOf(place: Place): MockAnswer {
  const given = fields(mapOf(place, answerForm), ["outcome", "result", "error"]);
  const outcome = given.get("outcome");
  if (outcome === undefined) return { kind: "broken", message: textOf(required(place, given, "error"), answerForm) };
  if (outcome.text === "success") return { kind: "success", result: given.get("result")?.json() ?? null };
  if (outcome.text !== "failed") throw outcome.refuse(`'${outcome.text}' is not an outcome.`, "success or failed");
  const error = required(place, given, "error");
  const said = fields(mapOf(error, "a map with code and message"), ["code", "message", "data"]);
  const code = required(error, said, "code");
  return {
    kind: "failed",
    code: code.kind === "number" ? (code.value as number) : textOf(code, "a code such as COMPONENT_FAILED"),
    message: textOf(required(error, said, "message"), "a text"),
    data: said.get("data")?.json() ?? null,
  };
}
