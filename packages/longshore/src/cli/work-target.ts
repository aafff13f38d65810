// Chooses the server of `longshore work`. Typed options take precedence over the environment. An orchestrator that starts workers names
// itself in variables of the environment.

import { type Command, Option } from "commander";
import type { Environment } from "../core/environment.ts";
import { CommandFailure } from "./failure.ts";
import { workerProtocol, workerProtocols } from "./protocols.ts";

/** The values of all flags, by their names in camel case. */
export type TargetFlags = { readonly on: string } & { readonly [name: string]: unknown };

export interface WorkTarget {
  /** The name of a worker protocol. */
  readonly protocol: string;
  /** The orchestrator, as text for people where the protocol needs no address. */
  readonly on: string;
}

/** The protocols that a flag chooses, with the name of that flag. */
const flagged = workerProtocols.flatMap(({ name, chosen: { byFlag } }) => {
  if (byFlag === undefined) return [];
  const option = new Option(byFlag.flags[0].flag);
  return [{ protocol: name, long: option.long as string, attribute: option.attributeName(), server: byFlag.server }];
});

export function targetOf(flags: TargetFlags, command: Pick<Command, "getOptionValueSource">, env: Environment = process.env): WorkTarget {
  const onFrom = command.getOptionValueSource("on");
  const chosen = flagged.filter(({ attribute }) => flags[attribute] !== undefined);
  const typed = [...(onFrom === "cli" ? ["--on"] : []), ...chosen.map(({ long }) => long)];
  if (typed.length > 1) {
    throw new CommandFailure(
      `${typed.slice(0, 2).join(" and ")} name two servers. Give one of them; a program that calls work() may have several.`,
    );
  }
  const [by] = chosen;
  if (by !== undefined) return { protocol: by.protocol, on: by.server(flags[by.attribute], env) };
  return (onFrom === "cli" ? undefined : fromEnvironment(flags.on, onFrom === "default", env)) ?? byAddress(flags.on);
}

function byAddress(on: string): WorkTarget {
  return { protocol: workerProtocol().name, on };
}

/** `isDefault` is true when `--on` was not given. */
function fromEnvironment(on: string, isDefault: boolean, env: Environment): WorkTarget | undefined {
  const found = workerProtocols.flatMap(({ name, chosen }) => {
    const choice = chosen.byEnvironment?.(env);
    return choice === undefined ? [] : [{ protocol: name, choice }];
  });
  const targets = found.flatMap(({ protocol, choice }) => ("on" in choice ? [{ protocol, ...choice }] : []));
  // These come first: an orchestrator sets them for the worker that it starts, regardless of other variables in the inherited environment.
  const target = targets.find(({ weak }) => weak === undefined) ?? (isDefault ? targets[0] : undefined);
  if (target !== undefined) return { protocol: target.protocol, on: target.on };
  for (const { choice } of isDefault ? found : []) {
    if ("refused" in choice) throw new CommandFailure(`${choice.refused} To work for the server at ${on} nevertheless, pass --on ${on}.`);
  }
  return undefined;
}
