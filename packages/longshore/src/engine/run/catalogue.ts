// Lists of definitions without their sources, which may have megabytes.

import type { Definition } from "./dialect.ts";

/** What lists of names show. */
export type DefinitionName = Pick<Definition, "name" | "dialect" | "createdAt">;

/** What lists show of one version. */
export type DefinitionHead = Pick<Definition, "id" | "version" | "dialect" | "createdAt">;

export interface Catalogue {
  /** The first version of each name that can be started, in the order in which they were defined. */
  names(): AsyncIterable<DefinitionName>;
  /** The names of the events that start a workflow. */
  events(workflow: string): Promise<readonly string[]>;
  /** The versions of a name, newest first; only those before version `before`, when it is given. */
  versions(name: string, page: { readonly limit: number; readonly before?: number | undefined }): Promise<DefinitionHead[]>;
}
