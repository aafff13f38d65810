// Starts the database that the nodes of a cluster share, once for all tests that run through a node.
import type { TestProject } from "vitest/node";
import { postgresMissing, TestPostgres } from "../../longshore/test/support/postgres.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The address of the database, or the name of what is missing. Absent when our server is a single process. */
    clusterDatabase: { readonly url: string } | { readonly missing: string };
  }
}

export default async function setup(project: TestProject): Promise<() => Promise<void>> {
  if (postgresMissing !== undefined) {
    project.provide("clusterDatabase", { missing: postgresMissing });
    return async () => {};
  }
  const postgres = await TestPostgres.start();
  project.provide("clusterDatabase", { url: postgres.urlOf("") });
  return () => postgres.remove();
}
