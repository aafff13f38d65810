// The document against the routes, in both directions. Every test of the API checks that answers look as documented.

import { describe, expect, it } from "vitest";
import { ownGroup, realGroups, startAdminServer } from "../../../../test/support/admin.ts";
import { actions } from "../../../core/actions.ts";

type Document = {
  openapi: string;
  info: { version: string };
  paths: Record<string, Record<string, { operationId: string; parameters: { name: string; in: string }[]; responses: object }>>;
  components: { schemas: Record<string, object> };
};

async function readDocument(): Promise<Document> {
  const { api } = await startAdminServer();
  const { status, body } = await api("GET", "/openapi.json");
  expect(status).toBe(200);
  return body as Document;
}

describe("the OpenAPI document", () => {
  it("lists every route of our own API, and no other", async () => {
    const document = await readDocument();
    const admin = ownGroup(await realGroups());
    const documented = Object.entries(document.paths).flatMap(([path, methods]) =>
      Object.keys(methods).map((method) => `${method.toUpperCase()} ${path}`),
    );
    const served = admin.routes.map((route) => `${route.method} ${route.path.replace(/:(\w+)/g, "{$1}")}`);
    expect(documented.sort()).toEqual(served.sort());
    expect(served.length).toBeGreaterThan(20);
  });

  it("names each operation once and describes each parameter of its path", async () => {
    const document = await readDocument();
    const ids: string[] = [];
    for (const [path, methods] of Object.entries(document.paths)) {
      for (const operation of Object.values(methods)) {
        ids.push(operation.operationId);
        const inPath = operation.parameters.filter((parameter) => parameter.in === "path").map(({ name }) => `{${name}}`);
        expect(path.match(/\{\w+\}/g) ?? []).toEqual(inPath);
      }
    }
    expect(new Set(ids).size).toBe(ids.length);
  });

  it("refers only to schemas that it has", async () => {
    const document = await readDocument();
    const text = JSON.stringify(document);
    const names = [...text.matchAll(/"\$ref":"#\/components\/schemas\/(\w+)"/g)].map(([, name]) => name as string);
    expect(names.length).toBeGreaterThan(20);
    for (const name of names) expect(document.components.schemas).toHaveProperty(name);
    expect(text).not.toContain("$defs");
  });

  it("states for every operation who may call it", async () => {
    const admin = ownGroup(await realGroups());
    const open = admin.routes.filter((route) => actions[route.action].who === "anyone").map((route) => route.path);
    expect(open).toEqual(["/api/longshore/v1/whoami", "/", "/health", "/livez", "/readyz"]);
    const changing = admin.routes.filter((route) => route.method !== "GET" && actions[route.action].reads);
    expect(changing.map(({ path }) => path)).toEqual(["/api/longshore/v1/workflows/check"]);
  });
});
