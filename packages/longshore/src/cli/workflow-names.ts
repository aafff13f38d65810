// Help for a person who misspelt the name of a workflow.

import type { Definition } from "./api.ts";
import type { Client } from "./client.ts";
import { readList } from "./pages.ts";
import { didYouMean } from "./suggestion.ts";

/** How many definitions are searched for a similar name. */
const searchedMax = 5_000;
/** A list of names that a person reads at a glance. */
const listedMax = 8;

/** A sentence with the nearest names; without any, what is defined at all. Never rejects, because it only adds to another error. */
export async function suggestionFor(client: Client, name: string): Promise<string> {
  const define = "Define it first with `longshore define FILE`.";
  try {
    const { items } = await readList<Definition>(client, { path: "/definitions", cursor: "after", limit: searchedMax });
    const names = items.map((definition) => definition.name);
    const question = didYouMean(name, names);
    if (question !== undefined) return question;
    if (names.length === 0) return `Nothing is defined yet. ${define}`;
    if (names.length <= listedMax) return `Defined are: ${names.join(", ")}. ${define}`;
    return `${define} \`longshore definitions\` lists what there is.`;
  } catch {
    // The list may need another scope than the start of a run.
    return define;
  }
}
