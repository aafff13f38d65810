// Set up once for the tests that run through a node of a cluster: the database that the nodes share.
import type { TestProject } from "vitest/node";
import { postgresMissing, TestPostgres } from "../../longshore/test/support/postgres.ts";

declare module "vitest" {
  interface ProvidedContext {
    /** The address of the database, or what is missing. Absent when our server is a single process. */
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
