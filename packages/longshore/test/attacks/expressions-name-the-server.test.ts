// The author of a definition asks jq where its program is: it answered with the path of the installed server. Threads of the tests have no
// such path, so this test uses the built files.

import { expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { evaluating } from "../support/built.ts";

it("jq learns no path of the server and none of its variables", async () => {
  const evaluator = new evaluating.Evaluator(systemClock);
  onTestFinished(() => evaluator.close());
  const asked = { language: "jq", code: "$ENV, env, get_jq_origin, get_prog_origin", input: "{}", msMax: 60_000 } as const;
  expect(await evaluator.evaluate(asked, new AbortController().signal, "run")).toEqual({ output: '[{},{},".","/"]' });
});
