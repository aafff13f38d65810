// Workflows written as Conductor's JSON.

import { atOnce } from "../../../core/slices/slice-work.ts";
import type { Dialect } from "../../../engine/run/dialect.ts";
import { compileSource, dialectName } from "./compile.ts";
import type { Environment } from "./context.ts";
import { hideCredentialsJson, namesCredential } from "./credentials.ts";
import { callLane } from "./operators.ts";
import { place } from "./placement.ts";
import { hasQuoted, unquoteJson } from "./quoting.ts";
import { explain, timeoutReason } from "./reasons.ts";
import { definitionOf } from "./records.ts";
import { resolve, withFollower } from "./resolve.ts";
import { settingsOf } from "./settings.ts";

/** `environment` resolves `${workflow.env.NAME}`; a definition can read nothing else from the process. */
export function conductorDialect(environment: Environment = () => null): Dialect {
  return {
    name: dialectName,
    shown: {
      maybe: (json) => hasQuoted(json) || namesCredential(json),
      runInput: (run) => (settingsOf(run).quotedInput ? unquoteJson(run.input) : run.input),
      taskInput({ input, lane }) {
        const unquoted = unquoteJson(input);
        return lane?.name === callLane ? hideCredentialsJson(unquoted) : unquoted;
      },
    },
    compile: (source) => atOnce(compileSource(source)),
    compileInSlices: compileSource,
    resolve: (plan, template, scope) => resolve(plan, template, scope, environment),
    place,
    explain,
    orphaned: (reason) => `Parent workflow has been terminated with reason: ${reason}`,
    unfollowed: withFollower,
    timedOut: (plan) => timeoutReason(definitionOf(plan)),
  };
}
