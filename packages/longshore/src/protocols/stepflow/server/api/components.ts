// ComponentsService: what can be called, by plugin: the built-ins, the configured mocks, and what workers have registered.

import { isObject, type Json, type JsonObject } from "../../../../core/json/json.ts";
import type { Encodable } from "../../../../net/protobuf/protobuf.ts";
import type { ComponentInfoEntry, ListRegisteredComponentsResponse } from "../../wire/api-messages.ts";

type Entry = Encodable<typeof ComponentInfoEntry>;

/** What one plugin can do. */
export interface Listed {
  readonly plugin: string;
  readonly components: readonly ListedComponent[];
}

export interface ListedComponent {
  /** As its worker sent it. */
  readonly id: string;
  readonly path: string;
  readonly description?: string;
  readonly inputSchema?: Json;
  readonly outputSchema?: Json;
}

/** Asks the plugins of the configuration. */
export interface ComponentSource {
  /** Never rejects: a plugin that cannot be reached is named in `failed`. */
  list(): Promise<{ listed: readonly Listed[]; failed: readonly { readonly plugin: string; readonly error: string }[] }>;
}

export async function listComponents(
  source: ComponentSource,
  excludeSchemas: boolean,
): Promise<Encodable<typeof ListRegisteredComponentsResponse>> {
  const { listed, failed } = await source.list();
  const components = listed.flatMap(({ plugin, components: of }) => of.map((component) => entryOf(plugin, component, excludeSchemas)));
  const key = ({ path, plugin }: Entry) => `${path}\0${plugin}`;
  components.sort((a, b) => (key(a) < key(b) ? -1 : 1));
  return { components, complete: failed.length === 0, failedPlugins: [...failed] };
}

function entryOf(plugin: string, component: ListedComponent, excludeSchemas: boolean): Entry {
  const { id, path, description, inputSchema, outputSchema } = component;
  return {
    componentId: id,
    ...(description === undefined ? {} : { description }),
    ...(excludeSchemas ? {} : { ...schema("inputSchema", inputSchema), ...schema("outputSchema", outputSchema) }),
    path,
    plugin,
  };
}

/** Schemas that are no objects (true and false) have no place on this wire. */
function schema(name: "inputSchema" | "outputSchema", value: Json | undefined): { [name: string]: JsonObject } {
  return isObject(value) ? { [name]: value as JsonObject } : {};
}
