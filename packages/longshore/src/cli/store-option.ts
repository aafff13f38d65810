// The option for data in PostgreSQL, for commands that look at the data of a server.

import { type Command, Option } from "commander";
import { describeStore } from "../server/external-store.ts";
import { warn } from "./failure.ts";
import { typedPassword } from "./options.ts";

const variable = "LONGSHORE_STORE";

export function withStoreToLookAt(command: Command): Command {
  return command
    .addOption(
      new Option("--store <url>", `the address of the data in PostgreSQL, instead of a folder (env: ${variable})`).conflicts("data"),
    )
    .hook("preAction", (_command, action) => {
      const { store, json = false } = action.opts<{ store?: string; json?: boolean }>();
      if (store !== undefined && describeStore(store).hasPassword)
        warn(`${typedPassword("--store")} Give it in PGPASSWORD, or the address in ${variable}, instead.`, json);
    });
}

/** The given address. Without one, that of the environment, unless an option names another place. */
export function storeOf(command: Command, others: readonly string[] = ["data"]): string | undefined {
  const { store } = command.opts<{ store?: string }>();
  if (store !== undefined) return store;
  return others.some((option) => command.getOptionValueSource(option) === "cli") ? undefined : process.env[variable] || undefined;
}
