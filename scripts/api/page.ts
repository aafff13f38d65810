// Writes the reference pages of the package's entries as Markdown.
import type { Entry, Kind, PublicName } from "./entries.ts";

const GENERATED = "<!-- Generated from doc comments by `npm run api`. Edit the comments, not this file. -->";

/** The pages below docs/api by file name. */
export function pagesOf(entries: readonly Entry[]): Map<string, string> {
  const pages = new Map(entries.map((entry) => [fileOf(entry.name), pageOf(entry)]));
  pages.set("README.md", indexOf(entries));
  return pages;
}

/** One line for each exported name that has no doc comment. */
export function findUndocumented(entries: readonly Entry[]): string[] {
  return entries.flatMap(({ name: entry, names }) =>
    names.filter(({ comment }) => comment === "").map(({ name }) => `${entry}: ${name} has no doc comment`),
  );
}

/** `longshore` is longshore.md, `longshore/conductor/compat` is conductor-compat.md. */
function fileOf(entry: string): string {
  return `${entry.replace(/^[^/]+\//, "").replaceAll("/", "-")}.md`;
}

function indexOf(entries: readonly Entry[]): string {
  const rows = entries.map(({ name, names }) => `- [\`${name}\`](${fileOf(name)}): ${names.map((one) => `\`${one.name}\``).join(", ")}`);
  const lead = "What each entry of the package exports, with its types and comments. Guides and recipes show how to use it.";
  return `${["# API", GENERATED, lead, rows.join("\n")].join("\n\n")}\n`;
}

function pageOf({ name, names, hidden }: Entry): string {
  const parts = [`# ${name}`, GENERATED, names.map((one) => `[${one.name}](#${anchorOf(one)})`).join(" · ")];
  for (const one of names) parts.push(...sectionOf(one, name, "##"));
  if (hidden.length > 0) parts.push("## Types behind these", "The signatures above use them; programs have no need to import them.");
  for (const one of hidden) parts.push(...sectionOf(one, name, "###"));
  return `${parts.join("\n\n")}\n`;
}

function sectionOf({ name, kind, comment, declarations, uses }: PublicName, entry: string, heading: string): string[] {
  const parts = [`${heading} ${name} (${kind})`];
  // Overloads have their comments in the block.
  if (comment !== "" && declarations.length === 1) parts.push(comment);
  parts.push(`\`\`\`ts\n${declarations.join("\n")}\n\`\`\``);
  const links = uses.map((used) => `[${used.name}](${used.entry === entry ? "" : fileOf(used.entry)}#${anchorOf(used)})`);
  if (links.length > 0) parts.push(`Uses ${links.join(", ")}.`);
  return parts;
}

/** With the kind, because `task` and `Task` would be the same anchor. */
function anchorOf({ name, kind }: { readonly name: string; readonly kind: Kind }): string {
  return `${name.toLowerCase()}-${kind}`;
}
